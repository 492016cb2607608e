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
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from traceback import format_exception
from typing import Any, BinaryIO, NoReturn, ParamSpec, TypeVar

from eatss.base.compilers import missing_packages_named
from eatss.base.diagnostics import EatssError, input_error
from eatss.base.frozen import frozen
from eatss.base.guard import end_with

T = TypeVar("T")
P = ParamSpec("P")

REGION_S = 9.8
"""Seconds of the processor for one region, reading it included: 10 with what is around the work."""

READING_S = REGION_S
"""Seconds of the processor for reading a program, before its regions are known."""

_CUTTING = ("lower", "lower.instructions", "lower.kernel", "lower.transform")
"""Packages that say how kernels may be cut."""

_NEEDED = (
    "analysis",
    "cards",
    "choose",
    "cost",
    "cuda",
    "frontend",
    *_CUTTING,
    "polyhedral",
    "program",
    "session",
)
_loading = threading.Lock()
_loaded: set[str] = set()

_NO_MEMORY = 3


class _Forked:
    """What a process knows of the bounds that it was forked with.

    It and those that it forks may take ``seconds`` of the processor, beyond those ``before``.
    """

    is_bounded = False
    seconds = math.inf
    before = 0.0


_here = _Forked()
_forking = threading.Lock()
"""One thread forks at a time, so that no other child has its pipe."""


def _fork() -> int:
    if sys.version_info < (3, 12):
        return os.fork()
    with warnings.catch_warnings():  # of threads, which NumPy has: none is used there
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


class ForkEndedError(Exception):
    """A forked process ended without a result: it took too long, too much, or died."""


@frozen
class Limits:
    """What work may take.

    ``seconds`` are those of the processor. ``memory_bytes`` come on top of what the process has at
    its start; addresses that are only reserved, as by CUDA, do not count.
    """

    seconds: float
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
    with _forking:
        read, write = os.pipe()
        try:
            child = _fork()
        except OSError:  # the system has no room for one
            child = -1
        if child == 0:
            os.close(read)
            _work_and_end(work, limits, write, parent)
        os.close(write)
    if child < 0:
        os.close(read)
        return work()
    with os.fdopen(read, "rb") as pipe:
        good, result = _waited_for(child, pipe, limits)
    if good:
        return result  # type: ignore[no-any-return]
    raise result


def _waited_for(child: int, pipe: BinaryIO, limits: Limits) -> tuple[bool, Any]:
    """Return the answer of a process when it has ended; end it where this one is interrupted."""
    code = 0
    try:
        answer = pipe.read()
        with suppress(ChildProcessError):  # the kernel waits for those of who ignores SIGCHLD
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except BaseException:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        raise
    if _here.is_bounded:
        _set_timer()
    if code == -signal.SIGPROF:
        raise ForkEndedError("more processor time than is allowed (a region has 10 s)")
    if code == _NO_MEMORY:
        raise ForkEndedError(f"over {limits.memory_bytes >> 20} MiB of memory")
    try:
        found: tuple[bool, Any] = pickle.loads(answer)  # noqa: S301 - our own fork's
    except Exception:
        raise ForkEndedError(f"its process ended with code {code}") from None
    return found


def bounded(work: Callable[[], T]) -> T:
    """Return what ``work`` returns, from a process of its own that has ``READING_S`` at first.

    As the work goes on it is allowed more. In a process that is bounded already it runs as it is.

    Args:
        work: as for :func:`run_forked`.

    Raises:
        InputError: ``EATSS-P001``, the process took too long, too much, or died.
    """
    if _here.is_bounded:
        return work()
    try:
        return run_forked(work, Limits(seconds=READING_S))
    except ForkEndedError as error:
        hint = "mark a smaller region"
        raise input_error("EATSS-P001", f"gave up: {error}", hint=hint) from None


def in_bounds(
    function: Callable[P, T], *, generates: bool = True, cuts: bool = True
) -> Callable[P, T]:
    """Make a function run as :func:`bounded` says, which may be one that generates no code.

    Nor may it be one that ``cuts`` kernels.
    """

    @wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> T:
        if not _here.is_bounded:
            _load(_NEEDED if generates else _CUTTING if cuts else ())
        return bounded(lambda: function(*arguments, **options))

    return run


def _load(needed: Sequence[str] = _NEEDED) -> None:
    """Load what calls need: a process that is forked while a thread loads a module never can.

    Where no other thread is, what generates no code needs a half of it.

    Raises:
        InputError: ``EATSS-C030``, a package is not installed that only generating needs.
    """
    with _loading, missing_packages_named():
        import_module("eatss.session.session")
        for package in needed if len(sys._current_frames()) == 1 else _NEEDED:
            if package not in _loaded:
                folder = Path(__file__).parents[1].joinpath(*package.split("."))
                for module in iter_modules([str(folder)]):
                    import_module(f"eatss.{package}.{module.name}")
                _loaded.add(package)


def allow(seconds: float) -> None:
    """Give the process of its own that this runs in so many seconds of the processor in all.

    Those that it has taken count, and those of processes that it has forked and waited for, since
    :func:`anew` if that was called. In any other process nothing happens.
    """
    if _here.is_bounded:
        _here.seconds = seconds
        _set_timer()


def allow_more(seconds: float) -> None:
    """Add seconds to those of :func:`allow`."""
    allow(_here.seconds + seconds)


def anew() -> None:
    """Count the seconds of :func:`allow` from now on: another try of the same work begins."""
    if _here.is_bounded:
        _here.before = taken_s()
        _set_timer()


def left_s() -> float:
    """Return how many seconds of the processor are left of those of :func:`allow`."""
    return math.inf if not _here.is_bounded else _here.seconds - (taken_s() - _here.before)


def taken_s() -> float:
    """Return the seconds of the processor that the process of its own has taken that this runs in.

    Those of processes that it waited for count; in others it is 0.
    """
    return sum(os.times()[:4]) if _here.is_bounded else 0.0


def _set_timer() -> None:
    left = left_s()
    if left <= 0:
        os.kill(os.getpid(), signal.SIGPROF)
    signal.setitimer(signal.ITIMER_PROF, min(left, 1e7))


def _work_and_end(work: Callable[[], object], limits: Limits, pipe: int, parent: int) -> NoReturn:
    """Work in the forked process, and end it: nothing of the other one's may run here after."""
    global _forking  # noqa: PLW0603 - it is held here for good
    code = 1
    gc.freeze()  # what the other process no longer needs is its own to finalise
    try:
        _forking = threading.Lock()
        _here.is_bounded = True
        _bound(limits)
        end_with(parent)
        with open(pipe, "wb") as stream:
            stream.write(pickle.dumps(_answer(work)))
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
    except Exception as error:
        if not isinstance(error, EatssError):  # where it came from is told in the other process
            error.add_note("".join(format_exception(error)))
        return False, error


def _bound(limits: Limits) -> None:
    import resource  # noqa: PLC0415 - only some systems have it

    faulthandler.disable()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
            signal.signal(number, usual)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    most = used * resource.getpagesize() + limits.memory_bytes
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    _here.before = 0.0
    allow(limits.seconds)
