"""Starts the workers of ``eatss.verify``, ``eatss.measure`` and of sweeps within milliseconds.

A worker imports for most of a second before it does anything, and the tests start hundreds. Here a
server imports once and forks for each. What stands in a worker's place under its guard hands over
its streams, environment and folder, ends as the worker does and takes it along where it is ended:

    python forking_server.py SOCKET MODULE
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


def main(words: list[str]) -> int:
    """Have a worker forked, and end as it does."""
    place, module = words
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        signal.signal(signal.SIGTERM, lambda number, frame: connection.sendall(_TERMINATE))
        asked = {"module": module, "folder": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109
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
    """Import modules, and fork workers until standard input is closed."""
    import gc  # noqa: PLC0415 - not for the one in a worker's place
    from importlib import import_module  # noqa: PLC0415

    for module in modules:
        import_module(module)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
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
                        _keep(connection)
                    finally:
                        os._exit(0)


def _keep(connection: socket.socket) -> None:
    """Fork a worker, tell how it ended, and end it where the one in its place is ended."""
    head, streams, _, _ = socket.recv_fds(connection, 4, 3)
    length, text = int.from_bytes(head, "big"), b""
    while len(text) < length:
        text += connection.recv(min(_MOST_BYTES, length - len(text)))
    worker = os.fork()
    if worker == 0:
        os.setsid()
        connection.close()
        _work(json.loads(text), streams)
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


def _work(asked: dict[str, object], streams: list[int]) -> None:
    """Be the worker."""
    import atexit  # noqa: PLC0415 - not for the one in a worker's place
    import tempfile  # noqa: PLC0415
    import traceback  # noqa: PLC0415
    from importlib import import_module  # noqa: PLC0415

    code = 1
    try:
        for descriptor, stream in enumerate(streams):
            os.dup2(stream, descriptor)
            os.close(stream)
        sys.stdin, sys.stdout, sys.stderr = (
            open(0, closefd=False),  # noqa: SIM115
            open(1, "w", closefd=False),  # noqa: SIM115
            open(2, "w", closefd=False),  # noqa: SIM115
        )
        os.chdir(str(asked["folder"]))
        environment = asked["environment"]
        assert isinstance(environment, dict)
        os.environ.clear()
        os.environ.update(environment)
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [path for path in paths if path and path not in sys.path]
        tempfile.tempdir = None
        import_module(str(asked["module"])).main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        for told in (sys.stdout, sys.stderr):
            told.flush()
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2], sys.argv[3:])
    else:
        sys.exit(main(sys.argv[1:]))
