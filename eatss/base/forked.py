"""Work in a forked process, bounded in time and memory: it may hang, crash or leak there.

isl counts most of what it does and stops at a bound, but not all of it; where it stops, now and
then it dies; and its Python bindings keep what they are given for good. A forked process
hands back its result and takes everything else along when it ends.
"""

from __future__ import annotations

import faulthandler
import gc
import math
import os
import pickle
import selectors
import signal
import struct
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from traceback import format_exception
from typing import NoReturn, ParamSpec, TypeVar

from eatss.base.compilers import missing_packages_named
from eatss.base.diagnostics import EatssError, input_error
from eatss.base.frozen import frozen
from eatss.base.interrupts import ENDING, HeldSignals

T = TypeVar("T")
P = ParamSpec("P")

REGION_S = 9.8
"""Seconds of the processor for one region, reading it included: 10 with what is around the work."""

READING_S = REGION_S
"""Seconds of the processor for reading a program, before its regions are known."""

_CHUNK = 1 << 16
_LENGTH = struct.Struct("<Q")
_LONGEST_S = 1e7
_LOOK_S = 20.0
_MOST_IDLE = 3
"""Looks at a process that does nothing after which it counts as one that never will."""

_NEEDED = (
    "analysis",
    "cards",
    "choose",
    "cost",
    "cuda",
    "frontend",
    "lower",
    "lower.instructions",
    "lower.kernel",
    "lower.transform",
    "polyhedral",
    "program",
    "session",
)
_loading = threading.Lock()
_loaded: list[bool] = []

_NO_MEMORY = 3
_PR_SET_PDEATHSIG = 1


class _Forks:
    """What this process knows of forking: one thread at a time, so that no other child has a pipe.

    ``pipe`` is where the answer of this process goes if it is itself one that was forked here, and
    ``seconds`` what it and those that it forks may take of the processor, beyond those ``before``.
    """

    def __init__(self) -> None:
        self.pipe: int | None = None
        self.seconds = math.inf
        self.before = 0.0
        self.lock = threading.Lock()

    def fork(self) -> tuple[int, int]:
        """Fork, and return the child and the pipe it answers through; it gets 0 and its end."""
        with self.lock:
            read, write = _pipe()
            try:
                child = _fork()
            except OSError:
                os.close(read)
                os.close(write)
                raise
            if child:
                os.close(write)
                return child, read
        os.close(read)
        if self.pipe is not None:
            os.close(self.pipe)
        self.pipe = write
        return 0, write

    def renew(self) -> None:
        """Forget who held the lock where this process was forked."""
        self.lock = threading.Lock()


def _pipe() -> tuple[int, int]:
    """Return a pipe that has none of the standard streams' numbers, where they are closed."""
    import fcntl  # noqa: PLC0415 - only some systems have it

    ends = os.pipe()
    above = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends]
    for end in ends:
        os.close(end)
    return above[0], above[1]


def _fork() -> int:
    if sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():  # of threads, which NumPy has: none is used there
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


_forks = _Forks()
if sys.platform == "linux":
    os.register_at_fork(after_in_child=_forks.renew)


class Cause(Enum):
    """Why a forked process ended without a result."""

    TIME = "time"
    MEMORY = "memory"
    CRASH = "crash"


class ForkEndedError(Exception):
    """A forked process ended without a result; ``cause`` says why."""

    def __init__(self, cause: Cause, what: str) -> None:
        super().__init__(what)
        self.cause = cause


@frozen
class Limits:
    """What work may take.

    ``seconds`` are those of the processor, ``clock_s`` those on the clock (``None``: any number);
    who is ``watched`` may not do nothing for a minute, as on a lock that nobody holds any more.
    ``memory_bytes`` come on top of what the process has at its start.
    """

    seconds: float
    clock_s: float | None = None
    watched: bool = True
    memory_bytes: int = 1 << 30


def run_forked(work: Callable[[], T], limits: Limits) -> T:
    """Return what ``work`` returns, or raise what it raises, run in a forked process.

    Elsewhere than on Linux, and where the system has no room for another process, it runs in this
    one, unbounded.

    Args:
        work: a function whose result, or error, can be pickled. It sees all there is, and changes
            nothing here.
        limits: what it may take.

    Raises:
        ForkEndedError: it took longer, or the process died.
    """
    if sys.platform != "linux":
        return work()
    parent = os.getpid()
    held = HeldSignals()
    try:
        held.hold()
        child, pipe = _forks.fork()
    except BaseException as error:
        held.let_go()
        if isinstance(error, OSError):  # the system has no room for one
            return work()
        raise
    if child == 0:
        _work_and_end(work, limits, pipe, parent)
    answer = _waited_for(child, pipe, limits, held)
    try:
        good, result = pickle.loads(answer)  # noqa: S301 - our own fork's
    except Exception as error:
        raise ForkEndedError(Cause.CRASH, f"its answer cannot be read: {error}") from None
    if good:
        return result  # type: ignore[no-any-return]
    raise result


def _waited_for(child: int, pipe: int, limits: Limits, held: HeldSignals) -> bytes:
    """Return the answer of a process that has ended; end it where this one is interrupted.

    Signals that were ``held`` since before the fork come now.
    """
    code: int | None = None
    try:
        held.let_go()
        clock_s = math.inf if limits.clock_s is None else limits.clock_s
        answer, ended = _read(pipe, child if limits.watched else None, time.monotonic() + clock_s)
        if ended:
            code = _exit_code(child)
            if _forks.pipe is not None:
                _set_timer()
    finally:
        try:
            os.close(pipe)
        finally:
            if code is None:
                _end(child)
    if code is None:
        raise ForkEndedError(Cause.TIME, "it waits for nothing that comes")
    if answer is not None:
        return answer
    if code == -signal.SIGPROF:
        raise ForkEndedError(Cause.TIME, "more processor time than is allowed")
    if code == _NO_MEMORY:
        raise ForkEndedError(Cause.MEMORY, f"over {limits.memory_bytes >> 20} MiB of memory")
    raise ForkEndedError(Cause.CRASH, f"its process ended with code {code}")


def _exit_code(child: int) -> int:
    """Wait for a process; 0 where others have, as the kernel does for who ignores SIGCHLD."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except ChildProcessError:
        return 0


def bounded(work: Callable[[], T], *, watched: bool = True) -> T:
    """Return what ``work`` returns, from a process of its own that has ``READING_S`` at first.

    As the work goes on it is allowed more. In a process that is bounded already it runs as it is.

    Args:
        work: as for :func:`run_forked`.
        watched: as in :class:`Limits`.

    Raises:
        InputError: ``EATSS-P001``, the process took too long, too much, or died.
    """
    if _forks.pipe is not None:
        return work()
    try:
        return run_forked(work, Limits(seconds=READING_S, watched=watched))
    except ForkEndedError as error:
        raise input_error(
            "EATSS-P001",
            f"gave up: {error} (10 s for a region by default)"
            if error.cause is Cause.TIME
            else f"gave up: {error}",
            hint="mark a smaller region"
            if error.cause is Cause.MEMORY
            else "mark a smaller region, or raise --max-operations",
        ) from None


def in_bounds(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function run as :func:`bounded` says."""

    @wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        if _forks.pipe is None:
            _load()
        return bounded(lambda: function(*arguments, **options))

    return run


def _load() -> None:
    """Load what calls need: a process that is forked while a thread loads a module never can.

    Raises:
        InputError: ``EATSS-C030``, a package is not installed that only generating needs.
    """
    if _loaded:
        return
    with _loading, missing_packages_named():
        for package in _NEEDED:
            folder = Path(__file__).parents[1].joinpath(*package.split("."))
            for module in iter_modules([str(folder)]):
                import_module(f"eatss.{package}.{module.name}")
        _loaded.append(True)


def release() -> None:
    """Lift the bounds of the process of its own that this runs in: isl's work is done."""
    if _forks.pipe is not None:
        import resource  # noqa: PLC0415 - only some systems have it

        allow(math.inf)
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


def outside_bounds(work: Callable[[], T], clock_s: float) -> T:
    """Return what ``work`` returns; where this process is bounded, from another that is not.

    For drivers: CUDA reserves more addresses than a bounded process may have. What it takes does
    not count as this process's.

    Args:
        work: as for :func:`run_forked`.
        clock_s: seconds on the clock, where it is another process.

    Raises:
        ForkEndedError: as :func:`run_forked`.
    """
    if _forks.pipe is None:
        return work()

    def released() -> T:
        release()
        return work()

    before = left_s()
    try:
        return run_forked(released, Limits(seconds=clock_s, clock_s=clock_s, watched=False))
    finally:
        allow_more(before - left_s())


def allow(seconds: float) -> None:
    """Give the process of its own that this runs in so many seconds of the processor in all.

    Those that it has taken count, and those of processes that it has forked and waited for, since
    :func:`anew` if that was called. In any other process nothing happens.
    """
    if _forks.pipe is not None:
        _forks.seconds = seconds
        _set_timer()


def allow_more(seconds: float) -> None:
    """Add seconds to those of :func:`allow`."""
    allow(_forks.seconds + seconds)


def anew() -> None:
    """Count the seconds of :func:`allow` from now on: another try of the same work begins."""
    if _forks.pipe is not None:
        _forks.before = _taken_s()
        _set_timer()


def left_s() -> float:
    """Return how many seconds of the processor are left of those of :func:`allow`."""
    return math.inf if _forks.pipe is None else _forks.seconds - (_taken_s() - _forks.before)


def room_for(seconds: float) -> bool:
    """Tell whether so much more work leaves a quarter of the time that one try of it may take.

    What counts is all that the process of its own that this runs in has taken, :func:`anew` or not.
    """
    return _forks.pipe is None or _taken_s() + seconds <= 0.75 * _forks.seconds


def taken_s() -> float:
    """Return the seconds that the process of its own has taken that this runs in, 0 in others."""
    return 0.0 if _forks.pipe is None else _taken_s()


def _taken_s() -> float:
    """Return the seconds of the processor that this process and those it waited for have taken."""
    return sum(os.times()[:4])


def _set_timer() -> None:
    left = left_s()
    if left <= 0:
        os.kill(os.getpid(), signal.SIGPROF)
    signal.setitimer(signal.ITIMER_PROF, min(left, _LONGEST_S))


def _end(child: int) -> None:
    """Wait for a process that was asked to end, as by Ctrl-C, or ask it; kill it at last.

    Interrupted again, it is killed at once.
    """
    try:
        _ask_to_end(child)
    except BaseException:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise


def _ask_to_end(child: int) -> None:
    for number, seconds in ((None, 0.2), (signal.SIGTERM, 1.0), (signal.SIGKILL, math.inf)):
        if number is not None:
            os.kill(child, number)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if os.waitpid(child, os.WNOHANG)[0]:
                    return
            except ChildProcessError:
                return
            time.sleep(0.005)


def _read(descriptor: int, child: int | None, end: float) -> tuple[bytes | None, bool]:
    """Read an answer, ``None`` where there is none; tell too whether the process ends itself."""
    data = b""
    idle, before = 0, -1.0
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if selector.select(max(0.0, min(_LOOK_S, end - time.monotonic()))):
                part = os.read(descriptor, _CHUNK)
                data += part
                size = _LENGTH.unpack(data[: _LENGTH.size])[0] if len(data) >= _LENGTH.size else -1
                if len(data) == _LENGTH.size + size:
                    return data[_LENGTH.size :], True
                if not part:
                    return None, True
                continue
            if time.monotonic() > end:
                return None, False
            if child is None:
                continue
            spent = _spent_s(child)
            if spent is None:
                return None, True
            idle, before = (idle + 1 if spent == before else 0), spent
            if idle >= _MOST_IDLE:
                return None, False


def _spent_s(child: int) -> float | None:
    """Return what a process and those it waited for took; ``None`` if it has ended."""
    try:
        state = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except OSError:
        return None
    return None if state[0] in "ZX" else sum(float(ticks) for ticks in state[11:15])


def _work_and_end(work: Callable[[], object], limits: Limits, pipe: int, parent: int) -> NoReturn:
    """Work in the forked process, and end it: nothing of the other one's may run here after."""
    code = 1
    gc.freeze()  # what the other process no longer needs is its own to finalise
    try:
        _bound(limits)
        _end_with(parent)
        data = _pickled(_answer(work))
        with open(pipe, "wb") as stream:
            stream.write(_LENGTH.pack(len(data)) + data)
        code = 0
    except MemoryError:
        code = _NO_MEMORY
    finally:
        os._exit(code)


def _answer(work: Callable[[], object]) -> tuple[bool, object]:
    try:
        return True, work()
    except MemoryError:
        raise
    except EatssError as error:
        return False, error
    except Exception as error:  # where it came from is told in the other process
        error.add_note("".join(format_exception(error)))
        return False, error


def _pickled(answer: tuple[bool, object]) -> bytes:
    try:
        return pickle.dumps(answer)
    except MemoryError:
        raise
    except Exception as error:
        return pickle.dumps((False, RuntimeError(f"its result cannot be sent: {error}")))


def _end_with(parent: int) -> None:
    """Ask the kernel for SIGTERM when the thread that waits for this process ends."""
    import ctypes  # noqa: PLC0415 - whoever comes here loads it sooner or later

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def _bound(limits: Limits) -> None:
    import resource  # noqa: PLC0415 - only some systems have it

    faulthandler.disable()
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = used * resource.getpagesize() + limits.memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    _forks.before = 0.0
    allow(limits.seconds)
