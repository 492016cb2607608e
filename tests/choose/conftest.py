"""Cards and kernels for the model's tests, written down from the loops they stand for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from eatss.analysis.facts import KernelFacts, Memory, ReferenceFacts
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.polyhedral.kernel import Loop

MakeFacts = Callable[..., KernelFacts]


def make_profile(**changes: int) -> GpuProfile:
    """A GA100 as in Table I of the paper, with changes."""
    figures: dict[str, Any] = {
        "threads_per_block": 1024,
        "threads_per_warp": 32,
        "registers_per_sm": 65536,
        "registers_per_block": 65536,
        "registers_per_thread": 255,
        "l1_shared_bytes": 192 * 1024,
        "l2_bytes": 40 << 20,
        "sm_count": 108,
        "max_threads_per_sm": 2048,
        "max_blocks_per_sm": 32,
        "shared_per_sm_bytes": 164 * 1024,
        "shared_per_block_bytes": 48 * 1024,
        "shared_per_block_optin_bytes": 163 * 1024,
        "memory_bytes": 40 << 30,
    }
    figures.update(changes)
    return GpuProfile(
        name="ga100",
        title="NVIDIA GA100",
        aliases=(),
        architecture="ampere",
        compute_capability=(8, 0),
        base_clock_mhz=None,
        boost_clock_mhz=None,
        bandwidth_gb_s=1555.0,
        peak_fp64_gflops=None,
        peak_fp64_tensor_gflops=None,
        peak_fp32_gflops=None,
        peak_tf32_tensor_gflops=None,
        tdp_w=None,
        sources=(),
        bibliography=(),
        **figures,
    )


def make_facts(
    *,
    loops: Iterable[tuple[str, bool, int | None]],
    references: Iterable[tuple[str, Memory, Polynomial]],
    inner: Iterable[tuple[str, int | None]] = (),
    cma: str | None = None,
    stride_one: dict[str, int] | None = None,
    name: str = "kernel",
    index: int = 0,
    element_bytes: int = 8,
    distinct: int | None = None,
) -> KernelFacts:
    """Facts of a kernel; loops are (name, parallel, trips), references (text, memory, volume)."""
    references = tuple(references)
    band = tuple(Loop(name=n, parallel=p, trip_count=t) for n, p, t in loops)
    counts = stride_one or {}
    return KernelFacts(
        name=name,
        index=index,
        statements=("S0",),
        host_loops=(),
        loops=band,
        inner_loops=tuple(Loop(name=n, parallel=False, trip_count=t) for n, t in inner),
        element_bytes=element_bytes,
        cma_loop=cma,
        references=tuple(
            ReferenceFacts(
                array=text.split("[")[0],
                access=text,
                statements=("S0",),
                reads=True,
                writes=False,
                memory=memory,
                cma=memory is Memory.L1,
                temporal=(),
                invariant=(),
                spatial=(),
                elements=volume,
                exact=True,
            )
            for text, memory, volume in references
        ),
        reductions=(),
        stride_one=tuple((loop.name, counts.get(loop.name, 0)) for loop in band),
        distinct_references=len(references) if distinct is None else distinct,
    )


def product(*loops: str) -> Polynomial:
    return Polynomial.product(loops)


def extent(*terms: str | int) -> Polynomial:
    """A sum of tile sizes and numbers: ``extent("h", "kh", -1)``."""
    return Polynomial.of((1, (t,)) if isinstance(t, str) else (t, ()) for t in terms)


def make_matmul(trips: int | None = None, **changes: object) -> KernelFacts:
    """``Out[i][j] += In[i][k] * Ker[k][j]``, Table II of the paper."""
    arguments: dict[str, object] = {
        "name": "matmul",
        "loops": [("i", True, trips), ("j", True, trips), ("k", False, trips)],
        "references": [
            ("Out[i][j]", Memory.L1, product("i", "j")),
            ("In[i][k]", Memory.SHARED, product("i", "k")),
            ("Ker[k][j]", Memory.L1, product("k", "j")),
        ],
        "cma": "j",
        "stride_one": {"j": 2, "k": 1},
    }
    arguments.update(changes)
    return make_facts(**arguments)  # type: ignore[arg-type]


def make_mvt(trips: int | None = None) -> KernelFacts:
    """``x[i] += A[i][j] * y[j]``: one parallel loop, walked across the rows."""
    return make_facts(
        name="mvt",
        loops=[("i", True, trips), ("j", False, trips)],
        references=[
            ("x[i]", Memory.L1, product("i")),
            ("A[i][j]", Memory.SHARED, product("i", "j")),
            ("y[j]", Memory.L1, product("j")),
        ],
        cma="i",
        stride_one={"i": 1, "j": 2},
    )


def make_heat(trips: int | None = None) -> KernelFacts:
    """A 3-D stencil over its star-shaped footprint."""
    i, j, k = (extent(name) for name in "ijk")
    two = Polynomial.constant(2)
    star = i * j * k + two * i * j + two * j * k + two * i * k
    return make_facts(
        name="heat",
        loops=[("i", True, trips), ("j", True, trips), ("k", True, trips)],
        references=[
            ("B[i][j][k]", Memory.L1, i * j * k),
            ("A[i][j][k]", Memory.L1, star),
        ],
        cma="k",
        stride_one={"k": 8},
        distinct=6,
    )


def make_conv(trips: int | None = None, taps: int | None = 3) -> KernelFacts:
    """A 2-D convolution over images and channels, filter taps below the band."""
    window = extent("h", "r", -1) * extent("w", "s", -1)
    return make_facts(
        name="conv",
        loops=[("n", True, trips), ("k", True, trips), ("h", True, trips), ("w", True, trips)],
        inner=[("r", taps), ("s", taps)],
        references=[
            ("Out[n][k][h][w]", Memory.L1, product("n", "k", "h", "w")),
            ("In[n][h+r][w+s]", Memory.L1, product("n") * window),
            ("F[k][r][s]", Memory.SHARED, product("k", "r", "s")),
        ],
        cma="w",
        stride_one={"w": 2},
    )


def make_mttkrp(trips: int | None = None) -> KernelFacts:
    """``A[i][j] += B[i][k][l] * D[l][j] * C[k][j]``."""
    return make_facts(
        name="mttkrp",
        loops=[("i", True, trips), ("j", True, trips), ("k", False, trips), ("l", False, trips)],
        references=[
            ("A[i][j]", Memory.L1, product("i", "j")),
            ("B[i][k][l]", Memory.SHARED, product("i", "k", "l")),
            ("D[l][j]", Memory.L1, product("l", "j")),
            ("C[k][j]", Memory.L1, product("k", "j")),
        ],
        cma="j",
        stride_one={"j": 3, "l": 1},
    )


def make_tensor5(trips: int | None = None) -> KernelFacts:
    """Five deep, four parallel: ``C[a][b][c][d] += A[a][b][e] * B[e][c][d]``."""
    return make_facts(
        name="tensor5",
        loops=[(name, name != "e", trips) for name in "abcde"],
        references=[
            ("C[a][b][c][d]", Memory.L1, product(*"abcd")),
            ("A[a][b][e]", Memory.SHARED, product(*"abe")),
            ("B[e][c][d]", Memory.L1, product(*"ecd")),
        ],
        cma="d",
        stride_one={"d": 2, "e": 1},
    )


@pytest.fixture(scope="session")
def ga100() -> GpuProfile:
    return make_profile()


@pytest.fixture(scope="session")
def profile_with() -> Callable[..., GpuProfile]:
    return make_profile


@pytest.fixture(scope="session")
def facts_of() -> MakeFacts:
    return make_facts


@pytest.fixture(scope="session")
def matmul() -> KernelFacts:
    return make_matmul()


@pytest.fixture(scope="session")
def matmul_with() -> MakeFacts:
    return make_matmul


@pytest.fixture(scope="session")
def nests() -> dict[str, Callable[..., KernelFacts]]:
    """Nests of every depth, by name, each taking the trip count of its loops."""
    return {
        "matmul": make_matmul,
        "mvt": make_mvt,
        "heat": make_heat,
        "conv": make_conv,
        "mttkrp": make_mttkrp,
        "tensor5": make_tensor5,
    }
