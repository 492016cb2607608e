"""What PPCG is given: sizes it can parse, blocks that launch, shared memory that exists."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl
import pytest

from eatss.analysis.facts import KernelFacts, Memory
from eatss.base.polynomial import Polynomial
from eatss.cards.profile import GpuProfile
from eatss.choose import ModelOptions, select_program

MakeFacts = Callable[..., KernelFacts]


def parse(text: str) -> dict[tuple[str, int], tuple[int, ...]]:
    """Read sizes as PPCG does: from ``kernel[number]`` to a named tuple of constants."""
    sizes: dict[tuple[str, int], tuple[int, ...]] = {}
    union = isl.UnionMap.read_from_str(isl.Context(), text)

    def take(entry: isl.Map) -> None:
        assert entry.get_tuple_name(isl.dim_type.in_) == "kernel"
        (number,) = (int(str(entry.domain().plain_get_val_if_fixed(isl.dim_type.set, 0))),)
        values = entry.range()
        sizes[entry.get_tuple_name(isl.dim_type.out), number] = tuple(
            int(str(values.plain_get_val_if_fixed(isl.dim_type.set, at)))
            for at in range(values.dim(isl.dim_type.set))
        )

    union.foreach_map(take)
    return sizes


def test_matmul_sizes_read_as_ppcg_takes_them(ga100: GpuProfile, matmul: KernelFacts) -> None:
    options = ModelOptions(model="paper", split=0.5, warp_fraction=0.5)
    selection = select_program([matmul], ga100, options)
    assert selection.ppcg_sizes == "{ kernel[0] -> tile[16, 384, 16]; kernel[0] -> block[4, 64] }"
    assert parse(selection.ppcg_sizes) == {("tile", 0): (16, 384, 16), ("block", 0): (4, 64)}


def test_kernels_keep_their_numbers_and_those_without_a_band_are_left_out(
    ga100: GpuProfile, nests: dict[str, MakeFacts], facts_of: MakeFacts, matmul_with: MakeFacts
) -> None:
    lone = facts_of(
        name="lone", index=1, loops=[], references=[("s", Memory.L1, Polynomial.constant(1))]
    )
    kernels = [nests["conv"](300), lone, matmul_with(name="last", index=2)]
    selection = select_program(
        kernels, ga100, ModelOptions(model="eatss", split=0.5, warp_fraction=0.25)
    )
    sizes = parse(selection.ppcg_sizes)
    assert set(sizes) == {("tile", 0), ("block", 0), ("tile", 2), ("block", 2)}
    assert len(sizes["tile", 0]) == 4
    assert len(sizes["block", 0]) == 3
    assert len(sizes["block", 2]) == 2


def test_a_program_of_lone_threads_gives_an_empty_map(
    ga100: GpuProfile, facts_of: MakeFacts
) -> None:
    lone = facts_of(loops=[], references=[("s", Memory.L1, Polynomial.constant(1))])
    selection = select_program([lone], ga100, ModelOptions(model="eatss"))
    assert parse(selection.ppcg_sizes) == {}
    assert selection.ppcg_max_shared_memory == 0


def test_every_block_launches_whatever_the_registers(
    ga100: GpuProfile, nests: dict[str, MakeFacts]
) -> None:
    kernels = [make(700) for make in nests.values()]
    selection = select_program(
        kernels, ga100, ModelOptions(model="eatss", split=0.25, warp_fraction=0.25)
    )
    for kernel in selection.kernels:
        assert 1 <= kernel.threads_per_block <= 1024
        assert kernel.threads_per_block * 256 <= ga100.registers_per_block


@pytest.mark.parametrize(
    ("split", "limit"), [(0.0, 0), (0.1, 192 * 1024 // 10), (0.5, 48 * 1024), (1.0, 48 * 1024)]
)
def test_shared_memory_follows_the_split_up_to_what_a_block_has(
    ga100: GpuProfile, matmul: KernelFacts, split: float, limit: int
) -> None:
    selection = select_program([matmul], ga100, ModelOptions(model="eatss", split=split))
    assert selection.ppcg_max_shared_memory == limit


def test_static_arrays_never_get_more_than_the_default_limit(
    ga100: GpuProfile, matmul: KernelFacts
) -> None:
    options = ModelOptions(model="eatss", split=0.75, shared_per_block_bytes=163 * 1024)
    selection = select_program([matmul], ga100, options)
    assert selection.kernels[0].shared_limit_bytes == 144 * 1024
    assert selection.ppcg_max_shared_memory == 48 * 1024
