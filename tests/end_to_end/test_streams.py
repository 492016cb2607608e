"""Streams that cannot be written, an early Ctrl-C, progress on a terminal: words, no traceback."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO

import pytest

from eatss.cli import main
from eatss.version import __version__
from tests.end_to_end.in_process import eatss

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


ROOT = Path(__file__).parents[2]
GEMM = ROOT / "kernels" / "gemm.c"

STEP = """
import sys, time
from eatss.cli import talk
from eatss.cli.talk import Talk, current, working
talk.SHOWN_AFTER_S = 0.3
current.set(Talk(**eval(sys.argv[2])))
with working("solving for a card") as step:
    for number in range(10):
        step.at("solving k%d\\x1b[7m" % number, number, 10, note="3 s left")
        time.sleep(float(sys.argv[1]) / 10)
print("data")
"""


def on_terminal(words: Sequence[str], *, stdout: int = subprocess.PIPE) -> tuple[str, str, int]:
    """Run Python with a terminal of 80 columns as stderr; return what is drawn and printed."""
    ours, terminal = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(
        [sys.executable, *words], stdout=stdout, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        drawn = b""
        with suppress(OSError):  # the other end of a terminal is closed
            while piece := os.read(ours, 65536):
                drawn += piece
        printed = b"" if process.stdout is None else process.stdout.read()
    os.close(ours)
    return drawn.decode(), printed.decode(), process.returncode


def plain(drawn: str) -> list[str]:
    """Return the lines that were drawn, without colours and movements."""
    return [
        line.strip() for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn))
    ]


def test_a_step_is_drawn_after_a_while_with_its_time_and_goes_when_it_ends() -> None:
    drawn, printed, code = on_terminal(["-c", STEP, "1", "{}"])
    assert (printed, code) == ("data\n", 0)
    lines = [line for line in plain(drawn) if line]
    assert re.fullmatch(r"solving k\d.* \d of 10, 3 s left, 0\.\d s", lines[0])
    assert all(len(line) <= 80 for line in lines)
    assert "\\x1b[7m" in drawn  # names cannot steer the terminal
    assert "\x1b[7m" not in drawn
    assert drawn.rstrip().endswith("\x1b[2K")  # nothing is left of it


def test_quiet_has_no_warnings() -> None:
    words = ("select", ROOT / "kernels" / "syrk.c", "--gpu", "a100", "--format", "ppcg")
    loud, quiet = eatss(*words), eatss(*words, "-q")
    assert loud.stdout == quiet.stdout != ""
    assert "warning: " in loud.stderr
    assert quiet.stderr == ""
