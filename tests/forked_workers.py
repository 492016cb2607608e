"""Has workers forked by a server instead of started: importing takes longer than their work."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import eatss
from eatss.guard import guarded
from tests import forking_server

_FILE = str(Path(forking_server.__file__).resolve())


RUNNING = ("eatss.measurement.worker", "eatss.verify.worker")
"""Workers of what runs programs."""

SWEEPING = ("eatss.explore.maker_worker", "eatss.explore.card_worker")
"""Workers of sweeps."""

ALSO_IMPORTED = ("eatss.explore.cuda_maker", "eatss.cuda.generate")
"""What the workers of sweeps import later."""


class ForkedWorkers:
    """Starts the server for the first worker.

    Args:
        workers: modules of workers.
        also: modules that they import later.
    """

    def __init__(self, workers: Sequence[str], also: Sequence[str] = ()) -> None:
        self._workers = workers
        self._also = also
        self._server: subprocess.Popen[bytes] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="eatss-tests-")
        self._place = str(Path(self._folder.name) / "socket")
        self._lock = threading.Lock()

    def guarded(self, command: Sequence[str]) -> list[str]:
        """Return what :func:`eatss.guard.guarded` does, of what has the worker forked."""
        python, option, module = command
        assert (python, option) == (sys.executable, "-m")
        assert module in self._workers
        with self._lock:
            if self._server is None:
                self._server = self._started()
        return guarded([sys.executable, "-I", "-S", _FILE, self._place, module])

    def end(self) -> None:
        """End the server, if it was started."""
        if self._server is not None:
            with self._server as server:
                assert server.stdin is not None
                server.stdin.close()
        self._folder.cleanup()

    def _started(self) -> subprocess.Popen[bytes]:
        roots = [str(Path(file).resolve().parents[1]) for file in (eatss.__file__, _FILE)]
        server = subprocess.Popen(
            [sys.executable, "-P", _FILE, "serve", self._place, *self._workers, *self._also],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
        )
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        return server
