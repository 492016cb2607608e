"""Any tile sizes, blocks and placements compute the same, at any problem sizes."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Literal

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.analysis import KernelFacts
from eatss.lower.recipe import CodegenOptions
from eatss.program import Program
from eatss.session.analysis import SymbolicProgram
from eatss.verify import Verification
from tests.examples import examples

KINDS = (
    "gemm",
    "trmm",
    "lu",
    "jacobi-2d",
    "seidel-2d",
    "atax",
    "correlation",
    "durbin",
)
MOST_THREADS = 1024
MOST_POINTS = 60_000

tile_sizes = st.one_of(
    st.integers(1, 9), st.sampled_from([16, 31, 32, 37, 64]), st.integers(1, 200)
)
thread_counts = st.sampled_from([1, 2, 3, 7, 8, 16, 17, 32, 33, 64, 100])
extents = st.one_of(st.sampled_from([0, 1, 2, 31, 37]), st.integers(0, 45))


def threaded_loops(facts: KernelFacts) -> int:
    """Return how many of the leading loops go to threads."""
    count = 0
    while count < min(3, len(facts.loops)) and facts.loops[count].parallel:
        count += 1
    return count


@st.composite
def options(draw: st.DrawFn, program: SymbolicProgram) -> CodegenOptions:
    """Draw sizes that a card can launch, for every kernel of a program."""
    tiles: list[tuple[str, tuple[tuple[str, int], ...]]] = []
    blocks: list[tuple[str, tuple[int, ...]]] = []
    for facts in program.program.facts:
        tiles.append((facts.name, tuple((loop.name, draw(tile_sizes)) for loop in facts.loops)))
        count = threaded_loops(facts)
        if count and draw(st.booleans()):
            block = draw(
                st.tuples(*[thread_counts] * count).filter(
                    lambda sizes: prod(sizes) <= MOST_THREADS and (len(sizes) < 3 or sizes[0] <= 64)
                )
            )
            blocks.append((facts.name, block))
    arrays = [a.name for r in program.regions for a in r.scheduled.scop.arrays if a.n_dims]
    memory: Literal["l1", "shared"] | None = draw(st.sampled_from([None, "l1", "shared"]))
    return CodegenOptions(
        tile_sizes=tuple(tiles),
        block=tuple(blocks),
        placements=() if memory is None else tuple((name, memory) for name in arrays),
        strict_fp=draw(st.booleans()),
        index_bits=draw(st.sampled_from([None, 32, 64])),
    )


def equals_the_original(
    generate: Callable[..., Program],
    facts_of: Callable[[str], SymbolicProgram],
    verify_kernel: Callable[..., Verification],
    data: st.DataObject,
    kernel: str,
    dtype: str,
) -> None:
    program = generate(kernel, dtype=dtype, options=data.draw(options(facts_of(kernel))))
    names = [parameter.name for parameter in program.parameters]
    sizes = data.draw(
        st.fixed_dictionaries(dict.fromkeys(names, extents)).filter(
            lambda chosen: prod(max(1, size) for size in chosen.values()) <= MOST_POINTS
        )
    )
    found = verify_kernel(program, [sizes])
    assert all((result.status, result.message) == ("ok", "") for result in found.results)
    assert found.status == ("ok" if any(r.compared for r in found.results) else "nothing compared")
    if program.strict_fp:
        assert found.bit_equal


drawn = given(
    data=st.data(), kernel=st.sampled_from(KINDS), dtype=st.sampled_from(["float", "double"])
)
unhurried = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
test_every_legal_choice_of_sizes_equals_the_original = settings(
    unhurried, max_examples=examples(2)
)(drawn(equals_the_original))
