"""A worker for tests of the supervisor: does what its job says."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Literal

from eatss.base.diagnostics import input_error
from eatss.base.supervisor import connect

Behaviour = Literal[
    "work",
    "hang",
    "exit",
    "abort",
    "refuse",
    "sleep beside a child",
    "half",
]


@dataclass(frozen=True, slots=True)
class Task:
    """What to do once the stages are entered, each of which may take ``limit_s``."""

    behaviour: Behaviour
    limit_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Entered:
    """A stage begins; ``processes`` are the worker and what it started."""

    stage: str
    limit_s: float
    processes: tuple[int, ...]


def main() -> None:
    """Do the task."""
    events = os.dup(0)
    task, _, emit = connect(Task)
    os.write(1, b"printed by a library\n")
    emit(Entered("first", task.limit_s, (os.getpid(),)))
    if task.behaviour == "refuse":
        emit(input_error("EATSS-X999", "not here", hint="elsewhere"))
    elif task.behaviour == "hang":
        time.sleep(60)
    elif task.behaviour == "exit":
        sys.exit(3)
    elif task.behaviour == "abort":
        os.abort()
    elif task.behaviour == "half":
        os.write(events, struct.pack("!i", 100) + b"the beginning of an event")
        os.abort()
    elif task.behaviour == "sleep beside a child":
        child = subprocess.Popen(["sleep", "60"])
        emit(Entered("second", task.limit_s, (os.getpid(), child.pid)))
        time.sleep(60)
    else:
        emit(Entered("second", task.limit_s, (os.getpid(),)))


if __name__ == "__main__":
    from tests import supervised_worker  # its classes are of this name where they are taken

    supervised_worker.main()
