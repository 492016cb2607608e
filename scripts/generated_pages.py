"""A hook of MkDocs: pages that are made of the program itself, so that they are never stale.

``commands.md`` has every command and option, ``profiles.md`` the profiles that are shipped, and
``schemas.md`` the JSON Schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from eatss.base.schemas import PUBLISHED, schema
from eatss.cards import list_profiles
from eatss.cli.app import COMMANDS, Command


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
    intro = (
        "# Commands\n\n"
        "This page is made from the program. `eatss COMMAND --help` shows the same on a "
        "terminal.\n\n"
        "Exit codes: 0 fine, 1 no sizes fit or a program fails, 2 the input is wrong, 3 a "
        "requirement of `eatss compare` is not met, 70 a fault of eatss, 130 Ctrl-C.\n"
    )
    return "\n".join([intro, *(text for one in COMMANDS for text in _documented(one))])


def _documented(word: str) -> Iterator[str]:
    command, name = Command(word), f"eatss {word}"
    context = click.Context(command, info_name=name)
    yield f"## {name}\n"
    yield f"{_escaped(command.help or '')}\n"
    yield f"```text\n{name} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    if examples := re.findall(r"^    (.+)$", command.epilog or "", re.MULTILINE):
        yield "Examples:\n\n```text\n" + "\n".join(examples) + "\n```\n"
    yield "| argument or option | meaning |\n| --- | --- |"
    for one in command.params:
        if record := one.get_help_record(context):
            written, said = record
            yield f"| `{written.replace('|', chr(92) + '|')}` | {_escaped(said)} |"
    yield ""


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
    for name in PUBLISHED:
        text = json.dumps(schema(name), indent=1, ensure_ascii=False)
        parts.append(f"## {name}\n")
        indented = "\n".join(f"    {line}" for line in f"```json\n{text}\n```".splitlines())
        parts.append(f'??? note "The schema"\n\n{indented}\n')
    return "\n".join(parts)
