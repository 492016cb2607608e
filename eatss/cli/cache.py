"""``eatss cache``: what was kept, where, and how to be rid of it."""

from __future__ import annotations

from typing import Annotated

import typer

from eatss.cli.options import Debug, Format
from eatss.diagnostics import input_error

EXAMPLES = """
Examples:

    eatss cache ls

    eatss cache clear

    eatss cache clear --kind cubin

    du -sh "$(eatss cache path)"
"""

app = typer.Typer(
    help="Show or clear what select, codegen and measure keep for the next time.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


@app.command(epilog=EXAMPLES)
def ls(output: Format = "table", debug: Debug = False) -> None:
    """List what is kept, what was used last first."""
    from eatss.cache import default_cache  # noqa: PLC0415 - keeps --help fast
    from eatss.cache.contents import Contents  # noqa: PLC0415
    from eatss.report.cache import render_contents  # noqa: PLC0415

    typer.echo(render_contents(Contents.of(default_cache()), output), nl=False)


@app.command(epilog=EXAMPLES)
def clear(
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only entries of this kind, as ls shows it."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Remove what is kept; it is computed anew when it is needed."""
    from eatss.cache import default_cache  # noqa: PLC0415 - keeps --help fast
    from eatss.report.cache import count_text  # noqa: PLC0415

    cache = default_cache()
    kinds = sorted({entry.kind for entry in cache.entries()})
    if kind is not None and kind not in kinds:
        raise input_error(
            "EATSS-C004",
            f"nothing of the kind '{kind}' is kept",
            hint=f"there are: {', '.join(kinds)}" if kinds else "the cache is empty",
        )
    count, size_bytes = cache.clear(kind)
    typer.echo(f"removed {count_text(count, size_bytes)} from {cache.folder}")


@app.command(epilog=EXAMPLES)
def path(debug: Debug = False) -> None:
    """Print the folder of the cache."""
    from eatss.cache import default_cache  # noqa: PLC0415 - keeps --help fast

    typer.echo(str(default_cache().folder))
