"""Arrays of one dimension whose rows have a length of their own: ``A[i + j * lda]``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eatss.base.diagnostics import Diagnostic
from eatss.lower.assumptions import assumptions_of
from eatss.polyhedral.scop import Scop

Region = Callable[..., Scop]
Refused = Callable[..., tuple[Diagnostic, ...]]


def demanded(scop: Scop) -> str:
    """Return what launchers demand of the sizes."""
    return " and ".join(str(one.condition) for one in assumptions_of(scop, {}, sizes=None))


@pytest.fixture
def strided(region: Region) -> Region:
    def read(body: str) -> Scop:
        return region(body, before="int lda;\n")

    return read


def test_a_leading_dimension_is_taken_for_long_enough(strided: Region) -> None:
    scop = strided("for (i = 0; i < n; i++) for (j = 0; j < m; j++) p[i + j * lda] = 0;")
    assert scop.array("p").n_dims == 2
    assert "lda" in demanded(scop)


def test_a_stride_is_taken_for_positive(strided: Region) -> None:
    scop = strided("for (i = 0; i < n; i++) p[i * lda] = 0;")
    assert scop.array("p").n_dims == 2
    assert "lda" in demanded(scop)


def test_rows_that_are_provably_long_enough_demand_nothing(strided: Region) -> None:
    scop = strided("for (i = 0; i < n; i++) for (j = 0; j < m; j++) p[i * m + j] = 0;")
    assert demanded(scop) == ""


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("for (j = 0; j <= m; j++) p[i * m + j] = 0;", id="never"),
        pytest.param("for (j = 0; j < 2 * m; j++) p[i * m + j] = 0;", id="small sizes only"),
        pytest.param("for (j = 0; j < m; j++) p[i * lda + j] = p[i * ldb + j];", id="two"),
    ],
)
def test_rows_that_overlap_are_refused(refused: Refused, body: str) -> None:
    found = refused("for (i = 0; i < n; i++) " + body, before="int lda, ldb;\n")
    assert {one.code for one in found} == {"EATSS-F036"}
