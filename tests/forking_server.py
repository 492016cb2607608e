"""Starts Python with the packages of eatss imported within milliseconds.

A worker or a command imports for most of a second before it does anything, and the tests start
hundreds. Here a server imports once and forks for each. What stands in the place of one hands over
its streams, environment and folder, ends as that does and takes it along where it is ended. Words
are those of Python: a file, a module (``-m``) or a text (``-c``), and what follows:

    python forking_server.py SOCKET WORDS…
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys

_MOST_BYTES = 1 << 20
_TERMINATE = b"t"
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(words: list[str]) -> int:
    """Have a worker forked, and end as it does."""
    place, *words = words
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        signal.signal(signal.SIGTERM, lambda number, frame: connection.sendall(_TERMINATE))
        asked = {
            "words": words,
            "folder": os.getcwd(),  # noqa: PTH109
            "environment": dict(os.environ),
            "ignored": [one for one in _ENDING if signal.getsignal(one) == signal.SIG_IGN],
        }
        text = json.dumps(asked).encode()
        length = len(text).to_bytes(4, "big")
        socket.send_fds(connection, [length], [0, 1, 2])
        connection.sendall(text)
        for descriptor in (0, 1):  # whoever reads from the worker sees when it closes them
            os.close(descriptor)
        code = int(connection.recv(16) or b"1")
    if code < 0:
        import resource  # noqa: PLC0415 - rarely needed

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def serve(place: str, modules: list[str]) -> None:
    """Import modules, call what is named of them, and fork until standard input is closed."""
    import gc  # noqa: PLC0415 - not for the one in a worker's place
    from importlib import import_module  # noqa: PLC0415

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
        _work(json.loads(text), streams, place)
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
    try:  # noqa: SIM105 - contextlib takes longer to import than all the rest
        os.killpg(leader, number)
    except ProcessLookupError:
        pass


def _work(asked: dict[str, object], streams: list[int], place: str) -> None:
    """Be the worker; its own workers are forked, too."""
    import atexit  # noqa: PLC0415 - not for the one in a worker's place
    import tempfile  # noqa: PLC0415
    import threading  # noqa: PLC0415
    import traceback  # noqa: PLC0415

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
        os.chdir(str(asked["folder"]))
        environment = asked["environment"]
        assert isinstance(environment, dict)
        for number in _ENDING:
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            ignored = asked["ignored"]
            assert isinstance(ignored, list)
            signal.signal(number, signal.SIG_IGN if number in ignored else usual)
        os.environ.clear()
        os.environ.update(environment)
        if os.environ.get("PYTHONUNBUFFERED"):
            sys.stdout.reconfigure(line_buffering=True)
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in paths if path and path not in sys.path]
        tempfile.tempdir = None
        words = asked["words"]
        assert isinstance(words, list)
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
    from eatss.base import guard, supervisor  # noqa: PLC0415 - not for the one in a worker's place

    stand_in = [sys.executable, "-I", "-S", __file__, place]

    def forked(command: list[str]) -> list[str]:
        is_python = command[0] == sys.executable  # else a compiler, or PPCG
        return guard.guarded([*stand_in, *command[1:]] if is_python else command)

    vars(supervisor)["guarded"] = forked


def _run(words: list[str]) -> None:
    """Run what the words name, as Python does."""
    import runpy  # noqa: PLC0415 - not for the one in a worker's place
    from pathlib import Path  # noqa: PLC0415

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
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:]))
