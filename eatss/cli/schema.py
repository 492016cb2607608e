"""``eatss schema``: JSON Schemas of what the other commands print."""

from __future__ import annotations

from typing import Annotated

import typer

from eatss.cli.options import Debug, Diagnostics

EXAMPLES = """
Examples:

    eatss schema

    eatss schema select > select.schema.json

    eatss schema recipe | jq '.properties | keys'
"""


def schema(
    document: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A document; default: list them.")
    ] = None,
    diagnostics: Diagnostics = "text",
    debug: Debug = False,
) -> None:
    """List the JSON documents of eatss, or print the JSON Schema of one."""
    from eatss.documents import json_text  # noqa: PLC0415 - keeps --help fast
    from eatss.report.schemas import schemas_table  # noqa: PLC0415
    from eatss.schemas import schema as schema_of  # noqa: PLC0415

    text = schemas_table() if document is None else json_text(schema_of(document))
    typer.echo(text, nl=False)
