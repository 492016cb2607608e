"""``--model register-tile``: the layout taken is the best of all, and a card can run it."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import get_args

import pytest

import eatss
from eatss.analysis.facts import KernelFacts, Memory
from eatss.cli.codegen import ModelChoice
from eatss.diagnostics import InputError, NoSolutionError
from eatss.gpu import GpuProfile, load_profile
from eatss.model import (
    CODEGEN_MODEL,
    ModelName,
    ModelOptions,
    Selection,
    program_to_smt2,
    select_kernel,
    select_program,
)
from eatss.model.register_tile import best_layout
from eatss.report.selection import render_selection
from tests.model.conftest import make_facts, make_profile, product

KERNELS = Path(__file__).parents[2] / "kernels"
GOLDEN = Path(__file__).parents[1] / "codegen" / "golden"
OPTIONS = ModelOptions(model="register-tile")
TITLES = ("h200", "a100-40gb")

Layout = tuple[tuple[int, int], ...]
"""Threads and points a thread along each mapped loop."""

Reference = tuple[str, str, str, bool, bool]
"""Array, loops it moves along, the contiguous one, whether it is read, whether written."""


def facts_of(
    loops: Sequence[tuple[str, bool, int | None]],
    references: Sequence[Reference],
    *,
    cma: str,
    size: int = 8,
    host: bool = False,
) -> KernelFacts:
    """Facts of a kernel whose references all are to different arrays."""
    facts = make_facts(
        loops=loops,
        references=[(f"{name}[]", Memory.L1, product(*used)) for name, used, *_ in references],
        cma=cma,
        element_bytes=size,
    )
    every = [name for name, *_ in loops]
    return replace(
        facts,
        host_loops=("t",) if host else (),
        references=tuple(
            replace(
                known,
                reads=reads,
                writes=writes,
                invariant=tuple(loop for loop in every if loop not in used),
                spatial=(along,) if along else (),
            )
            for known, (_, used, along, reads, writes) in zip(
                facts.references, references, strict=True
            )
        ),
    )


def gemm(trips: int = 4000, size: int = 8) -> KernelFacts:
    loops = [("i", True, trips), ("j", True, trips), ("k", False, trips)]
    references = [
        ("C", "ij", "j", True, True),
        ("A", "ik", "k", True, False),
        ("B", "kj", "j", True, False),
    ]
    return facts_of(loops, references, cma="j", size=size)


class Naive:
    """The model a second time, slowly, one layout after the other in exact numbers."""

    def __init__(self, facts: KernelFacts, references: list[Reference], card: GpuProfile) -> None:
        self.facts, self.references, self.card = facts, references, card
        self.size = facts.element_bytes
        self.mapped = [loop for loop in facts.loops if loop.parallel]
        self.serial = [loop for loop in facts.loops if not loop.parallel]
        self.mapped.sort(key=lambda loop: loop.name == facts.cma_loop)
        self.steps = {loop.name for loop in self.serial}
        self.sums = [bool(self.steps) and r[3] and r[4] and not set(r[1]) & self.steps
                     for r in references]  # fmt: skip
        self.words = -(-self.size // 4)
        self.sweep = prod(loop.trip_count or 4096 for loop in self.serial)

    def best(self) -> Fraction:
        layouts = list(self.layouts())
        layouts = [x for x in layouts if self.registers(x) <= self.card.registers_per_thread]
        layouts = [x for x in layouts if self.registers(x) * self.threads(x)
                   <= self.card.registers_per_block]  # fmt: skip
        if not any(self.sums):
            layouts = self.filling(layouts)
            layouts = self.at_most(layouts, lambda x: self.points(x) * self.words, 8)
            most = self.card.max_threads_per_sm // 8
        else:
            layouts = self.at_most(layouts, self.registers, self.card.registers_per_sm // 512)
            most = 256
        layouts = self.at_most(layouts, self.threads, max(32, most))
        full = self.card.max_threads_per_sm // self.card.max_blocks_per_sm
        full = min(full, max(map(self.threads, layouts)))
        layouts = [x for x in layouts if self.threads(x) >= full]
        layouts = self.filling(self.wide(layouts, 4))
        return min(
            self.energy(x, tiles, staged)
            for staged in self.stagings()
            for x in self.warps(self.coalesced(layouts, staged), staged, layouts)
            for tiles in itertools.product(*(self.tiles(loop.trip_count) for loop in self.serial))
            if self.fits(x, tiles, staged)
        )

    def layouts(self) -> Iterator[Layout]:
        choices = []
        for at, loop in enumerate(self.mapped):
            reach = self.reach(loop.trip_count)
            top = 64 if at == 0 and len(self.mapped) == 3 else 1024
            choices.append([(t, p) for t in (2**n for n in range(11)) for p in (1, 2, 4, 8)
                            if t <= top and t * p <= reach])  # fmt: skip
        least = min(32, prod(self.reach(loop.trip_count) for loop in self.mapped))
        for x in itertools.product(*choices):
            within = least <= self.threads(x) <= self.card.threads_per_block
            if within and self.points(x) <= 32 and (len(x) <= 3 or self.is_narrow(x)):
                yield x

    @staticmethod
    def is_narrow(x: Layout) -> bool:
        """Tell whether there are threads along the last loop and two others, points along three."""
        several = [t for t, _ in x[:-1] if t > 1]
        return len(several) <= 2 and prod(several[:-1]) <= 64 and sum(p > 1 for _, p in x) <= 3

    @staticmethod
    def reach(trips: int | None) -> int:
        size = 1
        while size < (1 << 13 if trips is None else trips):
            size *= 2
        return size

    @staticmethod
    def tiles(trips: int | None) -> list[int]:
        sizes = [s for s in (1, 2, 4, 8, 16, 32, 64) if trips is None or s <= trips]
        return sorted({*sizes, trips} if trips and trips <= 64 else set(sizes))

    @staticmethod
    def threads(x: Layout) -> int:
        return prod(t for t, _ in x)

    @staticmethod
    def points(x: Layout) -> int:
        return prod(p for _, p in x)

    @staticmethod
    def at_most(layouts: list[Layout], of: Callable[[Layout], int], limit: int) -> list[Layout]:
        limit = max(limit, min(map(of, layouts)))
        return [x for x in layouts if of(x) <= limit]

    def wide(self, layouts: list[Layout], least: int) -> list[Layout]:
        least = min(least, self.reach(self.mapped[-1].trip_count), max(x[-1][0] for x in layouts))
        return [x for x in layouts if x[-1][0] >= least]

    def filling(self, layouts: list[Layout]) -> list[Layout]:
        if any(loop.trip_count is None for loop in self.mapped):
            return layouts

        def blocks(x: Layout) -> int:
            return prod(-(-(loop.trip_count or 1) // (t * p))
                        for loop, (t, p) in zip(self.mapped, x, strict=True))  # fmt: skip

        wanted = self.card.sm_count * (8 if self.facts.host_loops else 2)

        def threads(x: Layout) -> int:
            points = prod(loop.trip_count or 1 for loop in self.mapped)
            return min(points, blocks(x) * self.threads(x))

        enough = min(wanted * 128, max(map(threads, layouts)))
        layouts = [x for x in layouts if threads(x) >= enough]
        wanted = min(wanted, max(map(blocks, layouts)))
        return [x for x in layouts if blocks(x) >= wanted]

    def stagings(self) -> Iterator[set[int]]:
        names = {loop.name for loop in self.mapped}
        possible = [at for at, (_, used, _, _, writes) in enumerate(self.references)
                    if not writes and names - set(used) and set(used) & self.steps]  # fmt: skip
        for count in range(len(possible) + 1):
            yield from map(set, itertools.combinations(possible, count))

    def coalesced(self, layouts: list[Layout], staged: set[int]) -> list[Layout]:
        x = self.mapped[-1].name
        through_l1 = any(
            along == x and (set(used) & self.steps or not self.steps)
            for at, (_, used, along, _, _) in enumerate(self.references)
            if at not in staged
        )
        if through_l1:
            return self.wide(layouts, 32)
        narrow = staged and any(self.sums)
        return self.at_most(layouts, lambda x: x[-1][0], 4) if narrow else layouts

    def warps(self, layouts: list[Layout], staged: set[int], every: list[Layout]) -> list[Layout]:
        limit = max(512, 4 * min(map(self.threads, every)))
        return [x for x in layouts if not staged or 4 * self.threads(x) <= limit]

    def reads(self, used: str, x: Layout) -> int:
        return prod(p for loop, (_, p) in zip(self.mapped, x, strict=True) if loop.name in used)

    def registers(self, x: Layout) -> int:
        operands = sum(self.reads(used, x) for _, used, *_ in self.references
                       if set(used) & self.steps) if any(self.sums) else 0  # fmt: skip
        held = self.points(x) * max(1, sum(self.sums))
        return held * self.words + 2 * operands * self.words + 16

    def extent(self, used: str, x: Layout, tiles: Sequence[int]) -> int:
        return prod(size for name, size in self.sizes(x, tiles).items() if name in used)

    def sizes(self, x: Layout, tiles: Sequence[int]) -> dict[str, int]:
        mapped = {loop.name: t * p for loop, (t, p) in zip(self.mapped, x, strict=True)}
        return mapped | {loop.name: s for loop, s in zip(self.serial, tiles, strict=True)}

    def fits(self, x: Layout, tiles: Sequence[int], staged: set[int]) -> bool:
        used = 0
        for at in staged:
            _, loops, along, *_ = self.references[at]
            count = self.extent(loops, x, tiles)
            rows = count // self.sizes(x, tiles)[along] if along else 0
            used += (count + rows) * self.size
        blocks = max(4 if staged else 1, 512 // self.threads(x))
        return used <= self.card.shared_per_block_bytes and (
            used * blocks <= self.card.shared_per_sm_bytes
        )

    def energy(self, x: Layout, tiles: Sequence[int], staged: set[int]) -> Fraction:
        total = Fraction(0)
        points, steps = self.points(x), prod(tiles)
        idle = self.idle(x)
        tile = points * self.threads(x)
        for at, (_, used, along, *_) in enumerate(self.references):
            walks = bool(set(used) & self.steps)
            once = 1 if walks else self.sweep
            if not self.sums[at]:
                near = 51 if at in staged else 130
                read = Fraction(self.reads(used, x) * self.size * near, points * once)
                total += read * idle if len(x) > 3 else read
            count = self.extent(used, x, tiles)
            fetched = count * 32
            if along:
                run = self.sizes(x, tiles)[along]
                fetched = count // run * -(-run * self.size // 32) * 32
            total += Fraction(fetched * 195, tile * (steps if walks else self.sweep))
            if at in staged:
                total += Fraction(count * (4 * 187 + 51 * self.size), tile * steps)
        slots = (60 if staged else 0) + (10 if self.steps else 0)
        return (
            total
            + idle * Fraction(slots * 187, points * steps)
            + idle * Fraction(40 * 187, points * self.sweep)
        )

    def idle(self, x: Layout) -> Fraction:
        idle, together = Fraction(1), 4096
        for loop, (t, p) in zip(self.mapped, x, strict=True):
            if loop.trip_count:
                covered = -(-loop.trip_count // (t * p)) * t * p
                idle *= Fraction(covered * 16 // loop.trip_count, 16)
                together = together * covered // loop.trip_count
        return Fraction(together, 4096) if len(x) > 3 else idle


def random_kernel(seed: int) -> tuple[KernelFacts, list[Reference], GpuProfile]:
    dice = random.Random(seed)
    names = "ijk"[: dice.choice([1, 2, 2, 2, 3])]
    loops = [(name, True, dice.choice([None, 7, 33, 64, 200])) for name in names]
    serial = "s" if dice.random() < 0.7 else ""
    loops += [(name, False, dice.choice([None, 3, 24, 100])) for name in serial]
    if len(names) == 3:
        loops = [(name, parallel, min(trips or 24, 24)) for name, parallel, trips in loops]
    references: list[Reference] = [("out", names, names[-1], True, True)]
    for at in range(dice.randint(1, 3)):
        used = "".join(name for name in names + serial if dice.random() < 0.6) or names[0]
        references.append((f"in{at}", used, dice.choice(["", used[-1]]), True, False))
    facts = facts_of(
        loops, references, cma=names[-1], size=dice.choice([4, 8]), host=dice.random() < 0.3
    )
    card = make_profile(
        shared_per_block_bytes=dice.choice([0, 4096, 49152]),
        registers_per_sm=dice.choice([32768, 65536]),
        sm_count=dice.choice([1, 20, 108]),
    )
    return facts, references, card


@pytest.mark.parametrize("seed", range(40))
def test_the_layout_is_the_best_of_all(seed: int) -> None:
    facts, references, card = random_kernel(seed)
    assert best_layout(facts, card, OPTIONS).energy_pj == Naive(facts, references, card).best()


@pytest.mark.parametrize("seed", range(8))
def test_the_layout_of_four_and_five_parallel_loops_is_the_best_of_its_space(seed: int) -> None:
    dice = random.Random(seed)
    names = "hijk" if seed % 2 else "ghijk"
    loops: list[tuple[str, bool, int | None]] = [
        (name, True, dice.choice([2, 3, 4])) for name in names[:-1]
    ]
    loops.append((names[-1], True, dice.choice([8, 13])))
    serial = "s" if dice.random() < 0.8 else ""
    loops += [(name, False, dice.choice([3, 24])) for name in serial]
    dice.shuffle(loops)  # a parallel loop may stand behind a serial one
    references: list[Reference] = [("out", names, names[-1], True, True)]
    for at in range(2):
        used = "".join(name for name in names + serial if dice.random() < 0.6) or names[0]
        references.append((f"in{at}", used, used[-1], True, False))
    facts = facts_of(loops, references, cma=names[-1], size=dice.choice([4, 8]))
    card = make_profile(sm_count=dice.choice([1, 20]))
    assert best_layout(facts, card, OPTIONS).energy_pj == Naive(facts, references, card).best()


def contraction(trips: int | None, free: str = "abcdef") -> KernelFacts:
    """A sum over ``p`` of tensors that each have half of the free loops, the last contiguous."""
    loops: list[tuple[str, bool, int | None]] = [(name, True, trips) for name in free]
    half = len(free) // 2
    references = [
        ("C", free, free[-1], True, True),
        ("A", free[:half] + "p", "p", True, False),
        ("B", "p" + free[half:], free[-1], True, False),
    ]
    return facts_of([*loops, ("p", False, trips)], references, cma=free[-1])


@pytest.mark.parametrize("trips", [3, 16, 48, None])
@pytest.mark.parametrize("free", ["abcd", "abcde", "abcdef", "abcdefgh"])
def test_many_parallel_loops_are_laid_out_within_two_seconds(free: str, trips: int | None) -> None:
    began = time.process_time()
    kernel = select_kernel(contraction(trips, free), load_profile("h200"), OPTIONS)
    assert time.process_time() - began < 2
    assert [name for name, _ in kernel.block] == list(free)
    assert sum(threads > 1 for _, threads in kernel.block) <= 3
    assert kernel.threads_per_block >= 32


def test_the_contiguous_loop_has_the_threads_along_x_wherever_it_stands() -> None:
    for cma in "abcd":
        facts = replace(contraction(48, "abcd"), cma_loop=cma)
        block = select_kernel(facts, load_profile("h200"), OPTIONS).block
        assert block[-1][0] == cma
        assert block[-1][1] >= 4


def test_a_convolution_layer_reuses_both_operands_in_registers() -> None:
    source = (GOLDEN / "convolution-layer.c").read_text(encoding="utf-8")
    (kernel,) = eatss.select(source, gpu="h200", model="register-tile").kernels
    points = {name: kernel.tile_size(name) // threads for name, threads in kernel.block}
    assert points["k"] > 1  # each of the input's elements meets several filters
    assert points["x"] * points["y"] * points["n"] > 1  # and each filter several elements
    assert kernel.block[-1][0] == "x"


@pytest.mark.parametrize("card", TITLES)
@pytest.mark.parametrize(
    ("kernel", "tiles", "threads", "staged"),
    [
        ("gemm", (128, 32, None), (32, 4), {"A", "B"}),
        ("jacobi-2d", (4, 256), (1, 256), set()),
        ("heat-3d", (4, 8, 32), (1, 8, 32), set()),
    ],
)
def test_kernels_get_the_sizes_that_were_measured_to_be_fast(
    card: str,
    kernel: str,
    tiles: tuple[int | None, ...],
    threads: tuple[int, ...],
    staged: set[str],
) -> None:
    selection = eatss.select(KERNELS / f"{kernel}.c", gpu=card, model="register-tile")
    first = selection.kernels[0]
    sizes = [size for _, size in first.tile_sizes]
    # how far a serial tile goes depends on the shared memory of the card: 16 or 32
    assert all(size == (tile or size) for size, tile in zip(sizes, tiles, strict=True))
    assert sizes[-1] >= 16
    assert tuple(size for _, size in first.block) == threads
    assert {r.array for r in first.references if r.placement == "shared"} == staged


def test_accumulators_of_floats_stay_in_registers() -> None:
    kernel = select_kernel(gemm(size=4), load_profile("h200"), OPTIONS)
    assert prod(size for _, size in kernel.tile_sizes[:2]) == 32 * kernel.threads_per_block


@pytest.mark.parametrize("name", sorted(path.stem for path in KERNELS.glob("*.c")))
def test_every_kernel_gets_a_block_that_launches(name: str) -> None:
    card = load_profile("h200")
    for kernel in eatss.select(KERNELS / f"{name}.c", gpu=card, model="register-tile").kernels:
        if not kernel.tile_sizes:
            continue
        assert kernel.optimal == "proven"
        assert kernel.compared > 0
        assert kernel.threads_per_block <= 256
        assert kernel.threads_per_block % card.threads_per_warp == 0
        assert all(kernel.tile_size(loop) % threads == 0 for loop, threads in kernel.block)
        for usage in kernel.usage:
            assert usage.used <= usage.available


def test_equal_input_gives_equal_output() -> None:
    card = load_profile("h200")
    assert select_kernel(gemm(), card, OPTIONS) == select_kernel(gemm(), card, OPTIONS)


def test_a_small_problem_gets_blocks_enough_for_the_card() -> None:
    card = load_profile("h200")
    kernel = select_kernel(gemm(512), card, OPTIONS)
    sizes = dict(kernel.tile_sizes)
    assert -(-512 // sizes["i"]) * -(-512 // sizes["j"]) >= 2 * card.sm_count


def test_without_shared_memory_everything_goes_through_l1() -> None:
    for options in (replace(OPTIONS, split=0.0), replace(OPTIONS, shared_per_block_bytes=0)):
        kernel = select_kernel(gemm(), load_profile("h200"), options)
        assert {reference.placement for reference in kernel.references} == {"l1"}
        assert dict(kernel.block)["j"] == 32


def test_a_card_that_cannot_launch_a_warp_is_an_error_that_says_why() -> None:
    with pytest.raises(NoSolutionError) as caught:
        select_program([gemm()], make_profile(threads_per_block=16), OPTIONS)
    (finding,) = caught.value.diagnostics
    assert finding.code == "EATSS-M020"
    assert "threads of a block" in finding.message
    assert "the card has 16 a block" in finding.message


def test_a_card_without_registers_is_an_error_that_says_why() -> None:
    with pytest.raises(NoSolutionError, match="registers of a thread"):
        select_program([gemm()], make_profile(registers_per_thread=8), OPTIONS)


@pytest.mark.parametrize("change", [{"uniform": True}, {"warp_fraction": 0.5}])
def test_options_that_only_the_paper_s_model_knows_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(InputError, match="register-tile") as caught:
        ModelOptions(model="register-tile", **change)  # type: ignore[arg-type]
    assert caught.value.diagnostics[0].code == "EATSS-M012"


def test_a_selection_survives_json_and_is_shown() -> None:
    selection = select_program([gemm()], load_profile("h200"), OPTIONS)
    document = json.loads(json.dumps(selection.to_dict()))
    assert Selection.from_dict(document) == selection
    text = render_selection(selection, "table", explain=True)
    assert "128 threads of 32 points" in text
    assert "layouts compared" in text


def test_generated_code_takes_threads_and_placements_as_selected() -> None:
    program = eatss.codegen(KERNELS / "gemm.c", gpu="h200")
    selection = eatss.select(KERNELS / "gemm.c", gpu="h200", model=CODEGEN_MODEL)
    (kernel,) = program.kernels
    x, y = reversed([size for _, size in selection.kernels[0].block])
    assert kernel.block == (x, y, 1)
    assert dict(kernel.tile_sizes) == dict(selection.kernels[0].tile_sizes)
    used = {usage.name: usage.used for usage in selection.kernels[0].usage}
    assert kernel.shared_bytes == used["shared_per_block"]


def test_the_command_line_generates_with_the_model_for_generated_code() -> None:
    assert ModelChoice.REGISTER_TILE.value == CODEGEN_MODEL
    assert {choice.value for choice in ModelChoice} == set(get_args(ModelName)) - {"prediction"}


def test_there_is_no_problem_for_a_solver_to_print() -> None:
    selection = select_program([gemm()], load_profile("h200"), OPTIONS)
    with pytest.raises(InputError, match="asks no solver"):
        program_to_smt2([gemm()], load_profile("h200"), selection)
