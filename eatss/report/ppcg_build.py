"""What a build with PPCG has made, in a few lines."""

from __future__ import annotations

import shlex

from rich.console import RenderableType
from rich.text import Text

from eatss.building import PpcgBuild
from eatss.report.diagnostics import diagnostics_text
from eatss.report.selection import selection_parts


def build_parts(build: PpcgBuild) -> list[RenderableType]:
    """Return the files of a build, its sizes, how PPCG was run, and warnings."""
    files = ", ".join(str(file) for file in build.files) or "nothing written"
    parts: list[RenderableType] = [Text(files, style="bold")]
    if build.program is not None:
        parts.append(Text(f"to verify and measure: {build.program}"))
    parts += [Text(shlex.join(command), style="dim") for command in build.commands]
    if build.warnings:
        parts += ["", diagnostics_text(build.warnings)]
    if build.selection is not None:
        parts += ["", *selection_parts(build.selection)]
    return parts
