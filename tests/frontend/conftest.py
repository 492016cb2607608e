"""Helpers of the front end's tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import islpy as isl
import pytest

from eatss.base.diagnostics import Diagnostic, InputError
from eatss.frontend import FrontendOptions, FrontendResult, parse_source
from eatss.polyhedral.scop import Scop

HEAD = (
    "void f(int n, int m, double A[100], double B[100][100], double *p, double s, int *idx)\n{\n"
    "  int i, j, k; double t;\n#pragma scop\n"
)
TAIL = "\n#pragma endscop\n}\n"


@pytest.fixture
def region() -> Callable[..., Scop]:
    """Parse statements inside a function with a few arrays; return the region."""

    def read(body: str, *, before: str = "", options: FrontendOptions | None = None) -> Scop:
        return parse_source(
            before + HEAD + body + TAIL, options=options or FrontendOptions()
        ).scops[0]

    return read


@pytest.fixture
def warnings_of() -> Callable[[str], tuple[Diagnostic, ...]]:
    """Parse statements; return the warnings."""

    def read(body: str) -> tuple[Diagnostic, ...]:
        return parse_source(HEAD + body + TAIL).warnings

    return read


@pytest.fixture
def refused() -> Callable[..., tuple[Diagnostic, ...]]:
    """Parse statements that must be refused; return the findings."""

    def read(body: str, *, before: str = "") -> tuple[Diagnostic, ...]:
        with pytest.raises(InputError) as caught:
            parse_source(before + HEAD + body + TAIL)
        return caught.value.diagnostics

    return read


@pytest.fixture
def only() -> Callable[[str], Scop]:
    """Parse a whole file with one region."""

    def read(text: str) -> Scop:
        result: FrontendResult = parse_source(text)
        assert len(result.scops) == 1
        return result.scops[0]

    return read


@pytest.fixture
def equal() -> Callable[[isl.Set | isl.Map, str], bool]:
    """Compare a set or map with one in isl's notation."""

    def compare(piece: isl.Set | isl.Map, text: str) -> bool:
        if isinstance(piece, isl.Set):
            return bool(piece.is_equal(isl.Set.read_from_str(piece.get_ctx(), text)))
        return bool(piece.is_equal(isl.Map.read_from_str(piece.get_ctx(), text)))

    return compare


@pytest.fixture(scope="session")
def random_programs() -> ModuleType:
    """The generator of random programs."""
    path = Path(__file__).parent / "random_programs.py"
    spec = importlib.util.spec_from_file_location("eatss_random_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
