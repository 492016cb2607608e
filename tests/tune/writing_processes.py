"""Processes that write to stores until they are killed, for tests: one a line of standard input.

A line is ``FILE`` or ``FILE<tab>leaves a child``. Printed are ``pid N`` as a process starts,
``row N`` after its row N was kept, ``refused CODE`` if the store is, ``child N`` where it forks one
that sleeps, and ``gone`` when it has ended.
"""

from __future__ import annotations

import os
import sys
import time
from itertools import count
from pathlib import Path

if not __package__:  # it is run as a file
    sys.path.insert(0, str(Path(__file__).parents[2]))

from eatss.base.diagnostics import EatssError
from eatss.tune.store import Store
from tests.tune.sweeps import SPACE, identity, row


def say(text: str) -> None:
    os.write(1, f"{text}\n".encode())


def write(path: str, *, leaves_a_child: bool) -> None:
    say(f"pid {os.getpid()}")
    try:
        store = Store.create_or_resume(path, identity(), SPACE)
    except EatssError as error:
        say(f"refused {error.code}")
        return
    if leaves_a_child:
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        say(f"child {child}")
    for number in count(len(store.rows())):
        store.add(row(number))
        say(f"row {number}")


def main() -> None:
    for line in sys.stdin:
        path, _, manner = line.rstrip("\n").partition("\t")
        process = os.fork()
        if process == 0:
            write(path, leaves_a_child=bool(manner))
            os._exit(0)
        os.waitpid(process, 0)
        say("gone")


if __name__ == "__main__":
    main()
