"""Streams that cannot be written, and a Ctrl-C that comes early: words, never a traceback."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TextIO

import pytest

from eatss.cli import main
from eatss.version import __version__

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")

WORDS = {
    "help": ["--help"],
    "version": ["--version"],
    "table": ["profiles"],
    "mistake": ["profiles", "nope"],
}


@pytest.fixture(params=["full", "full at once", "left", "closed"])
def broken(request: pytest.FixtureRequest) -> Iterator[TextIO | None]:
    """Yield a stream that cannot be written; ``None`` is what Python has for a closed one."""
    if request.param == "closed":
        yield None
        return
    if request.param == "left":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    raw = io.FileIO(writer, "w")
    at_once = request.param == "full at once"  # as PYTHONUNBUFFERED has it
    buffer = raw if at_once else io.BufferedWriter(raw)
    with io.TextIOWrapper(buffer, write_through=at_once) as stream:
        yield stream


def ended(
    monkeypatch: pytest.MonkeyPatch, words: list[str], out: TextIO | None, talk: TextIO | None
) -> int:
    monkeypatch.setattr(sys, "argv", ["eatss", *words])
    with redirect_stdout(out), redirect_stderr(talk), pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


@pytest.mark.parametrize("words", [WORDS[name] for name in ("help", "version", "table")])
def test_output_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, words: list[str], broken: TextIO | None
) -> None:
    is_left = broken is not None and not os.path.samestat(
        os.fstat(broken.fileno()), Path("/dev/full").stat()
    )
    talk = io.StringIO()
    code = ended(monkeypatch, words, broken, talk)
    if is_left:  # its reader had enough
        assert (code, talk.getvalue()) == (0, "")
    else:
        assert code == 2
        assert "standard output cannot be written: " in talk.getvalue()
        assert "EATSS-C014" in talk.getvalue()


INTERRUPTED = """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
from eatss.cli import main
from eatss.version import __version__
main()
"""


@pytest.mark.parametrize(
    "module", ["gc", "click", "eatss.cli.app", "eatss.base.diagnostics", "eatss.base.streams"]
)
def test_ctrl_c_while_commands_are_loaded_leaves_no_traceback(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_the_version_loads_nothing_that_is_slow() -> None:
    code = (
        "import sys; from eatss.cli import command; sys.argv = ['eatss', '--version']; command();"
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    said, loaded = done.stdout.splitlines()
    assert said == f"eatss {__version__}"
    assert not {"rich", "pydantic", "numpy", "islpy", "z3", "clang"} & set(loaded.split())
