"""A hook of MkDocs: pages that are made of the program itself, so that they are never stale.

``commands.md`` has every command and option, ``profiles.md`` the profiles that are shipped, and
``schemas.md`` the JSON Schemas.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from eatss.base.schemas import PUBLISHED, schema
from eatss.cards import list_profiles
from eatss.cli.typer_app import app


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    made = {"commands.md": commands(), "profiles.md": profiles(), "schemas.md": schemas()}
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show names in docstrings without the roles that Sphinx would want before them."""
    del page, config, files
    html = re.sub(r":(?:class|func|mod|meth|data|attr|exc):<code>~?", "<code>", html)
    return html.replace("::</p>", ":</p>")


def commands() -> str:
    """Return the reference of the command line, made of what ``--help`` is made of."""
    root = typer.main.get_command(app)
    intro = (
        "# Commands\n\n"
        "This page is made from the program. `eatss COMMAND --help` shows the same on a "
        "terminal.\n\n"
        "Exit codes: 0 fine, 1 no sizes fit or a program fails, 2 the input is wrong, 3 a "
        "requirement of `eatss compare` is not met, 70 a fault of eatss, 130 Ctrl-C.\n"
    )
    return "\n".join([intro, *_documented(root, "eatss", level=1)])


def _documented(command: Any, name: str, *, level: int) -> Iterator[str]:
    if level > 1:
        yield f"{'#' * level} {name}\n"
        yield f"{_escaped(command.help or '')}\n"
    if children := getattr(command, "commands", None):
        if level == 1:
            yield _table(command)
        for child in children:
            found = command.get_command(None, child)  # made when it is asked for
            yield from _documented(found, f"{name} {child}", level=level + 1)
        return
    arguments = [one for one in command.params if not hasattr(one, "is_flag")]
    words = " ".join(_value(command, one) for one in arguments)
    yield f"```text\n{name} [OPTIONS] {words}\n```\n"
    if examples := re.findall(r"^    (.+)$", command.epilog or "", re.MULTILINE):
        yield "Examples:\n\n```text\n" + "\n".join(examples) + "\n```\n"
    yield _table(command)


def _table(command: Any) -> str:
    lines = ["| argument or option | meaning |", "| --- | --- |"]
    for one in sorted(command.params, key=_panel):
        if getattr(one, "hidden", False):
            continue
        is_option = hasattr(one, "is_flag")
        names = ", ".join(f"`{name}`" for name in one.opts) if is_option else ""
        value = "" if getattr(one, "is_flag", False) else f"`{_value(command, one)}`"
        meaning = _escaped(one.help or "")
        if one.required:
            meaning += " **Required.**"
        elif one.default not in (None, False, (), []) and is_option:
            meaning += f" Default: `{one.default}`."
        lines.append(f"| {f'{names} {value}'.strip()} | {meaning} |")
    return "\n".join([*lines, ""])


def _panel(parameter: Any) -> tuple[bool, bool]:
    """Arguments come first, then the command's own options, then the groups that many share."""
    return hasattr(parameter, "is_flag"), bool(getattr(parameter, "rich_help_panel", None))


def _value(command: Any, parameter: Any) -> str:
    """Return how a value is written: its name, or the words that it may be."""
    if parameter.metavar:
        return str(parameter.metavar)
    annotation = inspect.signature(command.callback, eval_str=True).parameters[parameter.name]
    kind = annotation.annotation
    kinds = typing.get_args(kind)
    for one in (kind, *kinds, *(inner for each in kinds for inner in typing.get_args(each))):
        if typing.get_origin(one) is typing.Literal:
            return "|".join(str(word) for word in typing.get_args(one))
    return str(parameter.name).upper()


def _escaped(text: str) -> str:
    return re.sub(r"[<*_\[\]|]", r"\\\g<0>", text)


def profiles() -> str:
    """Return the table of shipped cards."""
    lines = [
        "# List of cards\n",
        "This page is made from the profiles that come with eatss. `eatss profiles NAME` prints "
        "one with the source of every figure.\n",
        "| `--gpu` | card | compute capability | SMs | L2 |",
        "| --- | --- | --- | ---: | ---: |",
    ]
    for card in list_profiles():
        names = ", ".join(f"`{name}`" for name in (card.name, *card.aliases))
        title = f"{card.title} (calibrated)" if card.calibrated else card.title
        capability = ".".join(str(part) for part in card.compute_capability)
        l2 = f"{card.l2_bytes / 2**20:g} MiB"
        lines.append(f"| {names} | {title} | {capability} | {card.sm_count} | {l2} |")
    lines.append(
        "\n*Calibrated* cards were measured by `eatss characterize`. The others take the figures "
        "of the H200, scaled by specifications, and output says so."
    )
    return "\n".join([*lines, ""])


def schemas() -> str:
    """Return every JSON Schema, each under what prints it."""
    parts = [
        "# JSON Schemas\n\nThis page is made from the program. `eatss schema NAME` prints one. "
        "The [page on JSON](json.md) says how the documents are written.\n"
    ]
    for name, published in PUBLISHED.items():
        text = json.dumps(schema(name), indent=1, ensure_ascii=False)
        printed = _escaped(published.printed_by)
        parts.append(f"## {name}\n\nPrinted by: {printed}\n")
        indented = "\n".join(f"    {line}" for line in f"```json\n{text}\n```".splitlines())
        parts.append(f'??? note "The schema"\n\n{indented}\n')
    return "\n".join(parts)
