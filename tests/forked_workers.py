"""Has Python forked by a server instead of started: importing takes longer than most work."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import eatss
from tests import forking_server
from tests.precompiled_shim import FOLDER

_FILE = Path(forking_server.__file__).resolve()


class Server:
    """A process that has imported what it forks Python for; it is started for the first.

    Args:
        modules: what it imports.
    """

    def __init__(self, *modules: str) -> None:
        self.modules = modules
        self._server: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.Lock()

    def forked(self, *words: str | Path, parent: int = 0) -> list[str]:
        """Return a command that does what ``python WORDS…`` does: a file, ``-m`` or ``-c``.

        Where a parent is given, it ends with that process.
        """
        with self._lock:
            if self._folder is None:
                self._folder = tempfile.TemporaryDirectory(prefix="eatss-tests-")
                subprocess.run(
                    ["gcc", "-O1", _FILE.with_name("stand_in.c"), "-o", self._stand_in], check=True
                )
                self._server = self._started(self._place)
        return [self._stand_in, self._place, str(parent), *map(str, words)]

    def end(self) -> None:
        """End the server, if it was started."""
        if self._server is not None and self._folder is not None:
            with self._server as server:
                assert server.stdin is not None
                server.stdin.close()
            self._folder.cleanup()

    @property
    def _place(self) -> str:
        assert self._folder is not None
        return str(Path(self._folder.name) / "socket")

    @property
    def _stand_in(self) -> str:
        return str(Path(self._place).with_name(forking_server.STAND_IN))

    def _started(self, place: str) -> subprocess.Popen[bytes]:
        roots = [str(Path(file).resolve().parents[1]) for file in (eatss.__file__, _FILE)]
        server = subprocess.Popen(
            [sys.executable, "-P", _FILE, place, *self.modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join([*roots, *filter(None, sys.path)]),
                FOLDER: str(Path(place).parent),
            },
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        return server


RUNNING = Server(
    "eatss.measurement.worker", "eatss.verify.worker", "tests.precompiled_shim:in_place"
)
"""Forks workers of what runs programs."""

ALL = Server(
    *RUNNING.modules,
    "eatss.tune.maker_worker",
    "eatss.base.forked:_load",
)
"""Forks workers of sweeps, commands and scripts: it has all that they import later."""


def python(*words: str | Path) -> list[str]:
    """Return a command for ``python WORDS…``, forked where the system can.

    Not for tests of what is imported, of signals, or of variables that Python reads at its start.
    """
    if not hasattr(os, "pidfd_open"):
        return [sys.executable, *map(str, words)]
    return ALL.forked(*words)


def worker(module: str) -> list[str]:
    """Return what :func:`eatss.base.supervisor.python` does, of what has a worker forked."""
    if module not in ALL.modules:
        return [sys.executable, "-m", module]
    server = RUNNING if module in RUNNING.modules else ALL
    return server.forked("-m", module, parent=os.getpid())
