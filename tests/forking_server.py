"""Starts Python with the packages of eatss imported within milliseconds.

A worker or a command imports for most of a second before it does anything, and the tests start
hundreds. Here a server imports once and forks for each. What stands in the place of one, a program
in C, hands over its streams, environment and folder, ends as that does and takes it along where it
is ended. Words are those of Python: a file, a module (``-m``) or a text (``-c``), and what follows:

    stand_in SOCKET PARENT WORDS…
"""

from __future__ import annotations

import atexit
import gc
import os
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pathlib import Path

STAND_IN = "stand_in"
"""The program in the folder of the socket."""

_MOST_BYTES = 1 << 20
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(place: str, modules: list[str]) -> None:
    """Import modules, call what is named of them, and fork until standard input is closed."""
    for name in modules:
        module, _, load = name.partition(":")
        imported = import_module(module)
        if load:
            getattr(imported, load)()
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _wait_for_ended)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([0, listener.fileno()], [], [])
            if 0 in ready:
                return
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    try:
                        _keep(connection, place)
                    finally:
                        os._exit(0)


def _wait_for_ended(number: int, frame: object) -> None:
    """Wait for those that have ended: the processor time that they took is told as the server's."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _keep(connection: socket.socket, place: str) -> None:
    """Fork a worker, tell how it ended, and end it where the one in its place is ended."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    length, text = int.from_bytes(head, "big"), b""
    while len(text) < length:
        text += connection.recv(min(_MOST_BYTES, length - len(text)))
    worker = os.fork()
    if worker == 0:
        os.setsid()
        connection.close()
        _work(os.fsdecode(text).split("\0")[:-1], streams, place)
    for descriptor in (0, 1, 2, *streams):
        os.close(descriptor)
    ended = os.pidfd_open(worker)
    while True:
        ready, _, _ = select.select([connection.fileno(), ended], [], [])
        if ended in ready:
            break
        told = connection.recv(16)
        _signal_group(worker, signal.SIGTERM if told else signal.SIGKILL)
        if not told:
            return
    _, status = os.waitpid(worker, 0)
    _signal_group(worker, signal.SIGKILL)  # compilers that it left behind
    connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())


def _signal_group(leader: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(leader, number)


def _work(asked: list[str], streams: list[int], place: str) -> None:
    """Be the worker; its own workers are forked, too."""
    count, *ignored = map(int, asked[0].split())
    folder, words, environment = asked[1], asked[2 : 2 + count], asked[2 + count :]
    code = 1
    try:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (
            open(0, closefd=False),  # noqa: SIM115
            open(1, "w", closefd=False),  # noqa: SIM115
            open(2, "w", closefd=False, errors="backslashreplace"),  # noqa: SIM115
        )
        os.chdir(folder)
        for number in _ENDING:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, signal.SIG_IGN if number in ignored else usual)
        os.environ.clear()
        os.environ.update(dict(one.split("=", 1) for one in environment))
        if os.environ.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(line_buffering=True)
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in paths if path and path not in sys.path]
        tempfile.tempdir = None
        _fork_workers(place)
        _run(words)
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        if isinstance(ended.code, str):
            sys.stderr.write(f"{ended.code}\n")
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for told in (sys.stdout, sys.stderr):
            told.flush()
        os._exit(code)


def _fork_workers(place: str) -> None:
    from eatss.base import supervisor  # noqa: PLC0415 - once the server has imported it

    def forked(module: str) -> list[str]:
        return [str(Path(place).with_name(STAND_IN)), place, str(os.getpid()), "-m", module]

    vars(supervisor)["python"] = forked


def _run(words: list[str]) -> None:
    """Run what the words name, as Python does."""
    first, *others = words
    sys.argv = words
    if first == "-m":
        sys.path.insert(0, str(Path.cwd()))
        sys.argv = others
        if not hasattr(sys.modules.get(others[0]), "__path__"):
            sys.modules.pop(others[0], None)
        runpy.run_module(others[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *others[1:]]
        main = sys.modules["__main__"] = type(sys)("__main__")
        exec(compile(others[0], "<string>", "exec"), main.__dict__)
    else:
        sys.path.insert(0, str(Path(first).resolve().parent))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2:])
