"""The blocks of code in the documentation, and what comments before them say.

A comment of one line stands right before the block that it is about:

- ``<!-- not run: REASON -->``: the commands are not executed; ``NOT_RUN`` has the reasons.
- ``<!-- exit code: 2 -->``: the last command of the block ends with it.
- ``<!-- differs: NAME, NAME -->``: parts of an output are not the same twice; ``DIFFERS`` has them.
- ``<!-- file: NAME -->``: the block is a file that commands of the page name.
- ``<!-- excerpt: FILE -->``: the block stands in a file of the repository.

A block ``console`` is a session that cannot be run, and says why. A block ``text`` right after a
block ``sh`` or ``python`` is what the last command, or the program, prints. In it a line ``…``
stands for any lines.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

REPOSITORY = Path(__file__).resolve().parents[2]
FIRST = ("tutorial.md", "README.md")
"""Pages that are read first."""

PAGES = sorted(
    [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md")],
    key=lambda page: (page.name not in FIRST, page.name != FIRST[0], page.name),
)

NOT_RUN: Mapping[str, str] = {
    "installs": "the CI script installs in a fresh environment",
    "needs a card": "no card stands in for a compiled program, Nsight Compute or microbenchmarks",
    "needs PPCG": "the recorded PPCG answers only what was recorded; see tests/ppcg_build",
    "needs a terminal": "keys such as TAB are pressed; completion has tests of its own",
    "shows a fragment": "lines that are no program by themselves",
    "takes minutes": "benchmarks, whose results are committed",
}

DIFFERS: Mapping[str, str] = {
    "solver time": r"(?<=, )\d+(?= ms\))",
    "verifying": r"\d+\.\d+(?= s (compiling|running))",
    "where eatss is": r"/\S*/kernels/(?=\w+\.c)",
    "this machine": "",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code.

    Attributes:
        page: the name of the page.
        language: what stands behind its first fence.
        text: what is in it.
        marks: what comments before it say, by their first words.
        shown: the output that is shown right after it.
    """

    page: str
    language: str
    text: str
    marks: Mapping[str, str]
    shown: Block | None = None

    @property
    def commands(self) -> list[str]:
        """The commands of a block for a shell, continued lines joined."""
        joined = re.sub(r" *\\\n *", " ", self.text)
        return [line for line in joined.splitlines() if line and not line.startswith("#")]

    @property
    def differs(self) -> tuple[str, ...]:
        """What is not the same in two outputs."""
        return tuple(name for name in self.marks.get("differs", "").split(", ") if name)


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in their order."""
    found: list[Block] = []
    marks: dict[str, str] = {}
    follows = False
    for token in MarkdownIt().parse(page.read_text()):
        if token.type == "html_block":
            marks |= dict(re.findall(r"<!-- ([a-z ]+): (.*?) -->", token.content))
            continue
        if token.type != "fence":
            marks, follows = {}, False
            continue
        block = Block(page=page.name, language=token.info, text=token.content, marks=marks)
        if block.language == "text" and follows:
            *before, last = found
            shown = Block(
                page=last.page,
                language=last.language,
                text=last.text,
                marks=last.marks,
                shown=block,
            )
            found = [*before, shown]
        else:
            found.append(block)
        follows = token.info in {"sh", "python"}
        marks = {}
    return found


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks of all pages in one of several languages."""
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def difference(shown: Block, printed: str) -> str:
    """Say where an output is not what a page shows; nothing if it is."""
    patterns = [DIFFERS[name] for name in shown.differs if DIFFERS[name]]
    wanted, got = _comparable(shown.text, patterns), _comparable(printed, patterns)
    parts: list[list[str]] = [[]]
    for line in wanted:
        if line == "…":
            parts.append([])
        else:
            parts[-1].append(line)
    at = 0
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        places = range(at, len(got) - len(part) + 1)
        if last and number:
            places = range(max(at, len(got) - len(part)), len(got) - len(part) + 1)
        place = next((one for one in places if got[one : one + len(part)] == part), None)
        if place is None or (number == 0 and place):
            return f"not printed, or not there: {part}\nprinted:\n{printed}"
        at = place + len(part)
    return "" if at == len(got) or not parts[-1] else f"more is printed:\n{printed}"


def _comparable(text: str, patterns: Sequence[str]) -> list[str]:
    for pattern in patterns:
        text = re.sub(pattern, "~", text)
    return [line.rstrip() for line in text.strip("\n").splitlines()]
