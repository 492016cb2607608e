"""Processes that write to stores until they are killed, for tests: one a line of standard input.

A line is ``FILE``, or ``+FILE`` for one that waits for no disk. Printed are ``pid N`` as a
process starts, ``row N`` after its row N was kept,
and ``gone`` when it has ended.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

if not __package__:  # it is run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from eatss.tune import store as stores
from eatss.tune.store import Store
from tests.tune.sweeps import SPACE, identity, row
from tests.tune.unflushed import connected


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def write(path: str) -> None:
    say(f"pid {os.getpid()}")
    if path.startswith("+"):
        stores._connected = connected
    store = Store.create_or_resume(path.removeprefix("+"), identity(), SPACE)
    for number in count(len(store.rows())):
        store.add(row(number))
        say(f"row {number}")


def main() -> None:
    for line in sys.stdin:
        process = os.fork()
        if process == 0:
            write(line.rstrip("\n"))
            os._exit(0)
        os.waitpid(process, 0)
        say("gone")


if __name__ == "__main__":
    main()
