"""No prediction moves less than a launch touches of memory, counted in sectors of 32 bytes.

What PPCG leaves on the host has a time in predictions, a least one.
"""

from __future__ import annotations

from collections.abc import Iterator

import islpy as isl
import pytest

import eatss
from eatss.analysis.facts import SECTOR_BYTES, KernelFacts, TouchedBox, touched_bytes
from eatss.base.targets import TARGETS, TargetName
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.cost.card import card_of
from eatss.polyhedral.kernel import Kernel
from eatss.polyhedral.scop import Scop
from eatss.report.pages import printed
from eatss.session.session import Session

SEVEN_ARRAYS = """
void seven(double c[7][12][12][12], double a[12][12][12], double b[12][12][12]) {
#pragma scop
  for (int i = 1; i < 11; i++)
    for (int j = 1; j < 11; j++)
      for (int k = 1; k < 11; k++)
        b[i][j][k] = c[0][i][j][k] * a[i][j][k] + c[1][i][j][k] * a[i-1][j][k]
          + c[2][i][j][k] * a[i+1][j][k] + c[3][i][j][k] * a[i][j-1][k]
          + c[4][i][j][k] * a[i][j+1][k] + c[5][i][j][k] * a[i][j][k-1]
          + c[6][i][j][k] * a[i][j][k+1];
#pragma endscop
}
"""

POOLING = """
void pool(float out[4][16][16], float in[4][32][32]) {
#pragma scop
  for (int c = 0; c < 4; c++)
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) {
        out[c][i][j] = 0;
        for (int r = 0; r < 2; r++)
          for (int s = 0; s < 2; s++)
            out[c][i][j] += in[c][2 * i + r][2 * j + s];
      }
#pragma endscop
}
"""

RED_BLACK = """
void red(double a[32][64], double b[32][64]) {
#pragma scop
  for (int i = 0; i < 32; i++)
    for (int j = 1; j < 31; j++)
      a[i][2 * j] = b[i][2 * j] + a[i][2 * j - 1] + a[i][2 * j + 1];
#pragma endscop
}
"""

COLUMNS = """
void columns(double a[40][40], double b[40]) {
#pragma scop
  for (int i = 0; i < 40; i++)
    b[i] = a[i][3] + a[39 - i][36];
#pragma endscop
}
"""

WEDGE = """
void wedge(double a[48][48], double b[48][48]) {
#pragma scop
  for (int i = 0; i < 48; i++)
    for (int j = i; j < 48; j++)
      b[i][j] = a[j][i] + a[i][i];
#pragma endscop
}
"""

FAR_APART = """
void far(double a[4096], double b[1024]) {
#pragma scop
  for (int i = 0; i < 1024; i++)
    b[i] = a[i] + a[i + 2048] + a[4095 - i];
#pragma endscop
}
"""

PROGRAMS = [SEVEN_ARRAYS, POOLING, RED_BLACK, COLUMNS, WEDGE, FAR_APART]


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.split("(")[0].split()[-1])
def test_boxes_have_the_sectors_that_are_touched(source: str) -> None:
    for scop, kernel, facts in _kernels(Session(source, cut="eatss")):
        for array in facts.work.arrays:
            for writing in (False, True):
                found = touched_bytes(_boxes(facts, array.name, writing=writing))
                exact = len(
                    _sectors(scop, kernel, array.name, array.element_bytes, writing=writing)
                )
                assert found <= 1.06 * exact * SECTOR_BYTES
                several = array.name == "a" and source in (WEDGE, FAR_APART, COLUMNS)
                assert found >= (0.3 if several else 0.9) * exact * SECTOR_BYTES, array.name


@pytest.mark.parametrize(
    ("source", "target"), [(POOLING, "ppcg"), (RED_BLACK, "cuda"), (COLUMNS, "cuda")]
)
def test_programs_move_what_they_touch(source: str, target: TargetName) -> None:
    _check(Session(source, cut=TARGETS[target].cut), target)


def _check(session: Session, target: TargetName) -> None:
    """Hold what is expected of memory against what the kernels touch that are one launch.

    What is written and read may be read from L2, so an array counts as written only then. Of
    several launches later ones find arrays in L2, which has room for such small ones.
    """
    selection = session.select("h200", SelectOptions(target=target))
    card = card_of(load_profile("h200"))
    for (scop, kernel, facts), chosen in zip(_kernels(session), selection.kernels, strict=True):
        if chosen.predicted is None or chosen.predicted.launches > 1:
            continue
        exact = {True: 0, False: 0}
        for array in facts.work.arrays:
            written = _sectors(scop, kernel, array.name, array.element_bytes, writing=True)
            read = _sectors(scop, kernel, array.name, array.element_bytes, writing=False)
            exact[bool(written)] += len(written or read) * SECTOR_BYTES
        every = sum(exact.values())
        slower = card.mixed(exact[False], exact[True]) if target == "cuda" else 1.0
        moved = dict(chosen.predicted.times_s)["memory"] * card.dram_bytes_s / slower
        assert moved >= 0.97 * every, f"{facts.name}: {moved} of {every} bytes"


def _kernels(session: Session) -> Iterator[tuple[Scop, Kernel, KernelFacts]]:
    for region in session.analysed.scops:
        for kernel, facts in zip(region.scheduled.kernels, region.facts, strict=True):
            yield region.scheduled.scop, kernel, facts


def _boxes(facts: KernelFacts, array: str, *, writing: bool) -> list[TouchedBox]:
    return [
        access.touched
        for statement in facts.work.statements
        for access in statement.accesses
        if access.array == array and (access.writes if writing else access.reads)
        if access.touched is not None
    ]


def _sectors(
    scop: Scop, kernel: Kernel, array: str, element_bytes: int, *, writing: bool
) -> set[int]:
    """Return the sectors of an array that a kernel touches, one by one."""
    shape = scop.array(array).extent
    lengths = [
        int(shape.dim_max_val(at).to_python()) + 1 for at in range(shape.dim(isl.dim_type.set))
    ]
    found: set[int] = set()
    for name in kernel.statements:
        statement = scop.statement(name)
        for access in statement.accesses:
            if access.array == array and access.is_write == writing:
                touched = access.relation.intersect_domain(statement.domain).range()
                touched.foreach_point(
                    lambda point: found.add(_sector(point, lengths, element_bytes))
                )
    return found


def _sector(point: isl.Point, lengths: list[int], element_bytes: int) -> int:
    address = 0
    for at, length in enumerate(lengths):
        address = address * length + int(point.get_coordinate_val(isl.dim_type.set, at).to_python())
    return address * element_bytes // SECTOR_BYTES


SUM = """\
void sum(int n, double x[n], double y[n], double s[1]) {
#pragma scop
  s[0] = 0;
  for (int i = 0; i < n; i++)
    s[0] += x[i];
#pragma endscop
}
"""


def test_a_program_without_kernels_has_the_time_of_the_host() -> None:
    found = eatss.predict(SUM, gpu="h200", parameters={"n": 3_999_999})
    assert found.host_statements == ("sum: S0", "sum: S1")
    assert found.kernels == ()
    assert found.time_s == pytest.approx(1e-3)
    told = printed(found, "table")
    assert "at least 1.000 ms there, 250.0 ps for each instance of a statement" in told
