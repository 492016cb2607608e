"""What all tests share."""

from __future__ import annotations

import gc
import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

_ROOT = str(Path(__file__).resolve().parents[1])
if _ROOT not in sys.path:  # benchmarks, and the doubles of other folders
    sys.path.append(_ROOT)

gc.set_threshold(100_000, 20, 50)  # else 6 % of the time: what parsers and isl make lives long

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # others would spin on cores that tests need
os.environ.pop("COLUMNS", None)  # workers are given one: pages are as wide as a file's here

settings.register_profile("same", derandomize=True, deadline=None, max_examples=30)
settings.register_profile("explore", print_blob=True, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


_SELECTING = (
    "clang",
    "islpy",
    "jsonschema",
    "markdown_it",
    "matplotlib",
    "networkx",
    "pycparser",
    "pydantic",
    "jinja2",
    "rich",
    "tomlkit",
    "click",
    "z3",
)
"""Packages that the project needs, and measuring a generated program does not."""

_FOR_OTHER_TESTS = ("nbclient", "nbformat", "scipy")
"""Those that some tests need besides, or what they test."""

# a machine that only measures has tests of what measures; these folders share what needs the rest
if any(importlib.util.find_spec(name) is None for name in _SELECTING):
    collect_ignore = ["choose", "frontend", "kernels", "lower", "polyhedral"]


class _Module(pytest.Module):
    """A file of tests, skipped where a package that only selecting needs is not there."""

    def _getobj(self) -> ModuleType:
        try:
            found: ModuleType = super()._getobj()  # type: ignore[no-untyped-call]
        except self.CollectError as error:
            needed = (*_SELECTING, *_FOR_OTHER_TESTS)
            missing = [name for name in needed if f"No module named '{name}" in str(error)]
            if not missing:
                raise
            for name, module in [*sys.modules.items()]:  # others that need it import it anew
                if getattr(module, "__file__", None) == str(self.path):
                    del sys.modules[name]
            pytest.skip(f"needs {missing[0]}", allow_module_level=True)
        return found


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module:
    return _Module.from_parent(parent, path=module_path)


@pytest.fixture(autouse=True, scope="session")
def _no_cache() -> Iterator[None]:
    """Leave the user's cache alone, and compute everything anew but where a test says otherwise."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EATSS_CACHE_DIR", os.devnull)
        yield


@pytest.fixture(autouse=True, scope="session")
def _unflushed() -> Iterator[None]:
    from tests.tune.unflushed import connected  # noqa: PLC0415 - needs the path above

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eatss.tune.store._connected", connected)
        yield


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep in a cache what the tests of a file compute, as users do: what repeats is computed once.

    All files that ask for it share the cache, also in other processes of the same run.
    """
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EATSS_CACHE_DIR", str(shared / "kept"))
        yield


@pytest.fixture(scope="module")
def analysed_once() -> Iterator[None]:
    """Have each source that the tests of a file name analysed once, and selected for once.

    For tests of what comes behind that: what is generated, printed, refused.
    """
    from tests.sessions import SessionsOnce  # noqa: PLC0415 - needs the path above

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eatss.session.session.Session", SessionsOnce())
        yield


@pytest.fixture
def heeded_signals() -> Iterator[None]:
    """Heed requests to end in a test and in its children, also in a run that ignores them.

    A script's background ignores Ctrl-C and ``nohup`` the hang-up, and so would they.
    """
    wanted: dict[signal.Signals, Any] = {
        signal.SIGINT: signal.default_int_handler,
        signal.SIGTERM: signal.SIG_DFL,
        signal.SIGHUP: signal.SIG_DFL,
    }
    before = {number: signal.signal(number, action) for number, action in wanted.items()}
    yield
    for number, action in before.items():
        signal.signal(number, action)


_FORKING = (
    "test_forked.py",
    "test_bounded.py",
    "test_api.py",
    "test_reproducers.py",
    "test_schedule.py",
)
"""Tests of work in processes of its own. Elsewhere it runs in the tests' own, as it does where the
system has no room for another: forking a process as large as this takes longer than the work."""


@pytest.fixture(autouse=True, scope="module")
def _one_process(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name not in _FORKING and importlib.util.find_spec("islpy") is not None:
            patch.setattr("eatss.base.forked._fork", _no_room)
        yield


def _no_room() -> int:
    raise BlockingIOError("one process is enough")


_STARTING = ("test_commands.py", "test_supervisor.py")
"""Tests of workers that are started as users start them. Elsewhere a server forks them."""


@pytest.fixture(autouse=True, scope="session")
def _servers() -> Iterator[None]:
    from tests.forked_workers import ALL, RUNNING  # noqa: PLC0415 - needs the path above

    yield
    for server in (ALL, RUNNING):
        server.end()


@pytest.fixture(autouse=True, scope="module")
def _forked_workers(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if request.path.name not in _STARTING and hasattr(os, "pidfd_open"):
            from tests.forked_workers import worker  # noqa: PLC0415 - needs the path above

            patch.setattr("eatss.base.supervisor.python", worker)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = _why_no_gpu()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("gpu") is not None:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Skip a test of a card that comes to need a package of selecting where only measuring is."""
    try:
        yield
    except Exception as error:
        if item.get_closest_marker("gpu") is None:
            raise
        missing = missing_of_selecting(error)
        if missing is None:
            raise
        pytest.skip(f"needs {missing}")


def missing_of_selecting(error: BaseException | None) -> str | None:
    """Return the package of selecting that an error is about, if it is not installed."""
    while error is not None:
        words = set(re.findall(r"\w+", str(error)))
        for name in _SELECTING:
            named = isinstance(error, ImportError) and str(error.name).split(".")[0] == name
            told = getattr(error, "code", "") == "EATSS-C030" and name in words
            if (named or told) and importlib.util.find_spec(name) is None:
                return name
        error = error.__cause__ or error.__context__
    return None


def _why_no_gpu() -> str | None:
    try:
        import pynvml  # noqa: PLC0415
    except ImportError:
        return "needs a GPU: nvidia-ml-py is not installed"
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        return f"needs a GPU: {error}"
    return None if count else "needs a GPU: NVML reports none"
