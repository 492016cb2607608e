from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

import eatss
from eatss.ppcg_build.host_code import Launched
from eatss.ppcg_build.mismatches import mismatches
from eatss.ppcg_build.program import KernelText, SharedArray
from eatss.ppcg_build.run import UsedSizes
from tests.ppcg_build.cases import KERNELS


@pytest.fixture(scope="module")
def selection() -> eatss.Selection:
    return eatss.select(KERNELS / "gemm.c", gpu="a100", objective="paper", model="paper")


def text(shared: int = 0) -> KernelText:
    array = SharedArray(name="s", element_type="double", extents=(shared // 8,), place=0)
    return KernelText(name="kernel0", parameters=(), shared=(array,) if shared else ())


def codes(
    selection: eatss.Selection,
    *,
    block: Sequence[int] | None = None,
    tile: Sequence[int] | None = None,
    shared: int = 0,
    kernels: int = 1,
) -> list[str]:
    """Return the codes of what differs from what was selected."""
    (kernel,) = selection.kernels
    asked = tuple(size for _, size in kernel.tile_sizes)
    threads = tuple(size for _, size in reversed(kernel.block))
    x, y, z = (*(block or threads), 1, 1)[:3]
    launched = Launched(kernel="kernel0", block=(x, y, z), arguments=())
    used = UsedSizes(tiles={0: tuple(tile or asked)}, blocks={})
    found = mismatches(selection, ["kernel0"] * kernels, [launched], [text(shared)], used)
    return [f"{one.code[-4:]} {one.severity.value}" for one in found]


def test_what_was_asked_for_is_no_mismatch(selection: eatss.Selection) -> None:
    assert codes(selection) == []


def test_other_kernels_are_an_error(selection: eatss.Selection) -> None:
    assert codes(selection, kernels=2) == ["R020 error"]
    assert codes(selection, tile=(8, 8)) == ["R020 error"]


def test_other_sizes_are_an_error(selection: eatss.Selection) -> None:
    assert codes(selection, tile=(7, 8, 9)) == ["R021 error"]
    assert codes(selection, block=(1024, 1)) == ["R022 error"]
    assert codes(selection, block=(1, 1, 2)) == ["R022 error"]


def test_fewer_threads_than_asked_for_are_a_warning(selection: eatss.Selection) -> None:
    assert codes(selection, block=(1, 1)) == ["R023 warning"]


def test_more_shared_memory_than_allowed_is_an_error(selection: eatss.Selection) -> None:
    most = selection.ppcg_max_shared_memory
    assert codes(selection, shared=most) == []
    assert codes(selection, shared=most + 8) == ["R024 error"]


def test_where_the_default_stands_its_sizes_are_as_they_are() -> None:
    chosen = eatss.select(KERNELS / "jacobi-2d.c", gpu="h200", defines=["MINI_DATASET"])
    kept = replace(
        chosen, kernels=tuple(replace(kernel, keeps_default=True) for kernel in chosen.kernels)
    )
    launches = [Launched(kernel=f"kernel{k}", block=(7, 5, 1), arguments=()) for k in range(2)]
    used = UsedSizes(tiles={0: (3, 3), 1: (3, 3)}, blocks={})
    texts = [replace(text(), name=f"kernel{k}") for k in range(2)]
    assert mismatches(kept, ["kernel0", "kernel1"], launches, texts, used) == ()


def test_without_launches_blocks_are_those_that_ppcg_says_it_used(
    selection: eatss.Selection,
) -> None:
    (kernel,) = selection.kernels
    tile = tuple(size for _, size in kernel.tile_sizes)
    block = tuple(size for _, size in kernel.block)
    for used, codes in ((block, []), ((*block[:-1], block[-1] + 1), ["EATSS-R022"])):
        sizes = UsedSizes(tiles={0: tile}, blocks={0: used})
        found = mismatches(selection, ["kernel0"], [], [], sizes)
        assert [one.code for one in found] == codes
