"""PPCG started, watched and, where it fails, said so."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, EatssError, ExitCode, input_error
from eatss.base.frozen import frozen
from eatss.base.supervisor import run_bounded

TIMEOUT_S = 300.0
MOST_TIMEOUT_S = 1e6
_SHOWN = 8
_INSTALL = "install PPCG (repo.or.cz/ppcg.git), or name it with --ppcg PATH"


class PpcgError(EatssError):
    """PPCG failed, or generated something else than it was asked for (exit code 1)."""

    exit_code = ExitCode.NO_SOLUTION


@frozen
class Generated:
    """What a run of PPCG wrote: host file, kernel file and its header; and what it said."""

    stem: str
    host: str
    kernels: str
    header: str
    said: str

    @property
    def files(self) -> tuple[tuple[str, bytes], ...]:
        """Names of the files, as PPCG gives them, and their contents."""
        texts = ((f"{self.stem}_kernel.hu", self.header), (f"{self.stem}_kernel.cu", self.kernels))
        named = (*texts, (f"{self.stem}_host.cu", self.host))
        return tuple((name, text.encode("utf-8", "surrogateescape")) for name, text in named)


def check_timeout(timeout_s: float) -> None:
    """Refuse a limit of time that is none.

    Raises:
        InputError: ``EATSS-R006``.
    """
    if not 0 < timeout_s <= MOST_TIMEOUT_S:
        raise input_error(
            "EATSS-R006",
            f"--ppcg-timeout is {timeout_s:g} seconds",
            hint=f"give it a time up to {MOST_TIMEOUT_S:.0f} seconds",
        )


def find_ppcg(named: str | os.PathLike[str] | None = None) -> str:
    """Return the path of PPCG: the one named, else the one on the path.

    Raises:
        InputError: ``EATSS-R003``, there is none.
    """
    wanted = os.fspath(named) if named is not None else "ppcg"
    found = shutil.which(wanted)
    if found is not None:
        return os.path.abspath(found)  # noqa: PTH100 - a link stays as it is called
    if named is None:
        raise input_error("EATSS-R003", "there is no 'ppcg' on the path", hint=_INSTALL)
    what = "is no program that can be run" if Path(wanted).exists() else "does not exist"
    raise input_error("EATSS-R003", f"--ppcg names '{wanted}', which {what}", hint=_INSTALL)


def command_text(command: Sequence[str]) -> str:
    """Return a command as a shell takes it."""
    return shlex.join(command)


def run_ppcg(command: Sequence[str], folder: Path, timeout_s: float) -> str:
    """Run PPCG in a folder; return what it said, on standard output and standard error.

    It ends with this process, and everything it starts with it.

    Raises:
        PpcgError: ``EATSS-R010`` it fails, ``EATSS-R011`` it dies of a signal, ``EATSS-R012`` it
            takes longer than ``timeout_s``.
        InputError: ``EATSS-R003``, it cannot be started.
    """
    name = Path(command[0]).name
    try:
        code, said = run_bounded(command, folder, timeout_s)
    except OSError as error:
        message = f"'{command[0]}' cannot be started: {error.strerror}"
        raise input_error("EATSS-R003", message, hint=_INSTALL) from None
    except subprocess.TimeoutExpired:
        raise _failed("EATSS-R012", f"{name} did not end within {timeout_s:g} s", "") from None
    if code < 0:
        raise _failed("EATSS-R011", f"{name} died of {signal.Signals(-code).name}", said)
    if code:
        raise _failed("EATSS-R010", f"{name} failed with exit code {code}", said)
    return said


def generated_files(folder: Path, stem: str, said: str) -> Generated:
    """Read what PPCG wrote into a folder.

    Raises:
        PpcgError: ``EATSS-R013``, a file is missing.
    """
    texts: dict[str, str] = {}
    for name in ("host.cu", "kernel.cu", "kernel.hu"):
        path = folder / f"{stem}_{name}"
        try:
            texts[name] = path.read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            raise _failed(
                "EATSS-R013", f"PPCG ended well, but wrote no '{path.name}'", said
            ) from None
    return Generated(
        stem=stem,
        host=texts["host.cu"],
        kernels=texts["kernel.cu"],
        header=texts["kernel.hu"],
        said=said,
    )


def ppcg_error(code: str, message: str, hint: str) -> PpcgError:
    """Return an error about what PPCG did."""
    return PpcgError(Diagnostic(code=code, message=message, hint=hint))


def _failed(code: str, message: str, said: str) -> PpcgError:
    lines = [line.rstrip() for line in said.splitlines() if line.strip()][:_SHOWN]
    if not lines:
        hint = "it said nothing; run it by hand: --dry-run prints how"
    else:
        hint = f"it said: {lines[0]}" if len(lines) == 1 else "\n    ".join(["it said:", *lines])
    return ppcg_error(code, message, hint)
