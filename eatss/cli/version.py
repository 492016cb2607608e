"""``eatss --version``: a line for scripts; with ``--verbose`` what a report of a fault needs."""

from __future__ import annotations

import typer


def print_version(*, in_full: bool) -> None:
    """Print the version on the first line, and below it, if wanted, all that it runs with."""
    from eatss.version import __version__  # noqa: PLC0415 - keeps --help fast

    typer.echo(f"eatss {__version__}")
    if not in_full:
        return
    from eatss.cli.progress import working  # noqa: PLC0415
    from eatss.machine.installed_versions import installed_versions  # noqa: PLC0415

    with working("asking cards and compilers"):
        facts = installed_versions()
    width = max(len(one.name) for one in facts)
    for one in facts:
        typer.echo(f"{one.name:{width}}  {one.found}")
