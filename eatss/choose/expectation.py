"""What the model expects of sizes that a user names, and what is far from the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from eatss.analysis.facts import KernelFacts, StatementFacts, touched_bytes
from eatss.analysis.layout import Layout, Sizes
from eatss.analysis.variant import KernelVariant, TensorFormat
from eatss.base.codec import JsonForm, JsonObject, encode
from eatss.base.diagnostics import Diagnostics, input_error
from eatss.base.frozen import Names, frozen
from eatss.base.shown import (
    ExpectedRun,
    OfRun,
    ProgramSize,
    Tabular,
    in_lines,
    run_of,
    sizes_text,
    why_unknown,
)
from eatss.base.targets import CUDA, TargetName
from eatss.cards.profile import GpuProfile
from eatss.choose.cuda import expected_of, with_room
from eatss.choose.ppcg import candidates, default_vector
from eatss.choose.selection import (
    PPCG_DEFAULT,
    KernelSelection,
    PpcgOptions,
    Selection,
    layout_text,
)
from eatss.cost.card import card_of
from eatss.cost.expected import Prediction
from eatss.cost.ppcg_model import PpcgModel
from eatss.cost.terms import prediction_at, too_large

Threads: TypeAlias = Sequence[int] | Mapping[str, int]
"""Threads of a block in the order of the loops, the last along ``x``, or by loop."""


@frozen
class KernelExpectation(Layout):
    """Sizes of one kernel and what is expected of them; ``None`` where they cannot launch.

    ``default`` is what is expected of the sizes and options that the target takes by itself:
    PPCG's own, or those that eatss selects for the energy objective. ``note`` says why nothing is
    expected of these. For generated code ``shared`` are the arrays that are staged, ``spread`` says
    how sums are spread, ``shared_sum`` how blocks share sums that are not, and ``sum_kinds`` what
    these are (``"maximum"``), and ``warps`` the instruction that warps compute products by.
    ``stages`` are the boxes of shared memory in use at once where threads compute alone,
    ``row_block`` says how it and those behind it become one kernel, ``time_tile`` how they take
    several steps at once, ``loop_block`` how one block runs their loop: nothing is left for those
    behind it.
    """

    json_layout = JsonForm(
        apart=("resident",),
    )

    name: str
    statements: Names
    predicted: Prediction | None
    default: Prediction | None
    note: str | None = None
    shared: Names = ()
    sum_loops: Names = ()
    sum_kinds: Names = ()

    def __repr__(self) -> str:
        one = self.predicted
        found = f"not predicted: {self.note}" if one is None else f"{one.amounts} by {one.bound}"
        return f"<KernelExpectation {self.name}: {layout_text(self)}; {found}>"


@frozen
class AtClock:
    """What a run takes, in s and J, with the SMs held to a clock; ``None`` if not predicted."""

    clock_mhz: float
    time_s: float | None
    energy_j: float | None


@frozen
class ProgramExpectation(OfRun, Tabular):
    """What is expected of a program on a card.

    Attributes:
        file: The source, as it was named.
        functions: Functions with a region.
        gpu: Name of the card's profile.
        dtype: ``"float"`` or ``"double"``.
        calibrated: Whether figures of such a card were measured (``eatss characterize``).
        options: PPCG's options, ``None`` for the target cuda.
        kernels: What is expected of each kernel, in s and J.
        target: Whose code: ``"ppcg"`` or ``"cuda"``.
        warnings: Why PPCG's kernels may be others than these.
        sizes: What is expected is for these sizes of the program.
        host_statements: ``"function: S0"``, in no kernel of PPCG, because nothing is parallel
            there.
        host_time_s: Seconds that these take on the host at least, ``None`` where they cannot be
            counted.
        least_time_s: Time of the work of a run at the roofline of the card, in s.
        clocks: What is expected at lower clocks, with these sizes, if that was asked for.
        schema_version: Of the JSON form.
    """

    json_layout = JsonForm(also=("time_s", "energy_j"))
    shown_by = "expectation"
    rows_by = "eatss.choose.expectation:program_rows"

    file: str
    functions: Names
    gpu: str
    dtype: str
    calibrated: bool
    options: PpcgOptions | None
    kernels: tuple[KernelExpectation, ...]
    target: TargetName = "ppcg"
    warnings: Diagnostics = ()
    sizes: tuple[ProgramSize, ...] = ()
    host_statements: Names = ()
    host_time_s: float | None = 0.0
    least_time_s: float = 0.0
    clocks: tuple[AtClock, ...] = ()
    schema_version: int = 1

    def __repr__(self) -> str:
        why = why_unknown(self.kernels)
        return in_lines(
            f"ProgramExpectation {self.file}: {self.gpu}, {self.dtype}, target {self.target}: "
            f"{self.expected or f'{why}, {sizes_text(self.sizes)}'}",
            [repr(kernel)[len("<KernelExpectation ") : -1] for kernel in self.kernels],
        )

    @property
    def expected(self) -> ExpectedRun | None:
        """What a run is expected to take, ``None`` where some kernel does not launch."""
        return run_of(
            [kernel.predicted for kernel in self.kernels],
            host_time_s=self.host_time_s,
            least_time_s=self.least_time_s,
            sizes=self.sizes,
        )

    def to_dict(self) -> JsonObject:
        """Return the expectation as plain JSON types."""
        plain: JsonObject = encode(self)
        return plain


def expect(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    *,
    tiles: Mapping[str, Mapping[str, int]],
    blocks: Mapping[str, Threads],
    options: PpcgOptions,
) -> tuple[KernelExpectation, ...]:
    """Predict sizes that are given; what is not given is PPCG's default.

    Args:
        kernels: the kernels of a program.
        profile: the card.
        tiles: tile sizes by kernel and loop.
        blocks: threads by kernel; the key ``""`` is for every kernel that has no entry.
        options: PPCG's options for the program.

    Raises:
        InputError: ``EATSS-K001``: a block has other axes than the kernel has threads.
    """
    return tuple(
        _expectation(
            facts,
            profile,
            tiles.get(facts.name, {}),
            blocks.get(facts.name, blocks.get("", {})),
            options,
        )
        for facts in kernels
    )


def expect_cuda(
    kernels: Sequence[KernelFacts],
    variants: Mapping[str, tuple[KernelVariant, ...]],
    profile: GpuProfile,
    selection: Selection,
    own: Selection,
) -> tuple[KernelExpectation, ...]:
    """Predict generated code.

    Args:
        kernels: the kernels of a program.
        variants: how the generator can cut each of them.
        profile: the card.
        selection: what is selected for the energy objective.
        own: the same with the sizes of the user.
    """
    found = []
    in_one = {name for one in own.kernels for name in one.joined}
    for facts, usual, wanted in zip(kernels, selection.kernels, own.kernels, strict=True):
        kernel, prediction, note = wanted, wanted.predicted, wanted.note
        if facts.name not in in_one:
            kernel, prediction, note = _expected_of(facts, variants[facts.name], profile, wanted)
        shared = [r.array for r in kernel.references if r.placement == "shared"]
        found.append(
            KernelExpectation(
                **kernel.chosen(),
                name=facts.name,
                statements=facts.statements,
                predicted=prediction,
                default=usual.predicted,
                note=note,
                shared=tuple(dict.fromkeys(shared)),
                sum_loops=kernel.sum_loops,
                sum_kinds=kernel.sum_kinds,
            )
        )
    return tuple(found)


def _expected_of(
    facts: KernelFacts,
    variants: Sequence[KernelVariant],
    profile: GpuProfile,
    wanted: KernelSelection,
) -> tuple[KernelSelection, Prediction | None, str | None]:
    """Return a kernel with as many boxes as code has, what is expected of it, or why nothing is.

    Where boxes that are wanted are more than a block can have, code has fewer, and one on cards
    that cannot copy ahead. It has none of what has no room then.
    """
    wanted = with_room(facts, variants, profile, wanted)
    most = wanted.pipeline_stages if profile.compute_capability >= CUDA.copies_ahead else 1
    prediction, note = expected_of(facts, variants, profile, wanted)
    for boxes in range(most, 0, -1):
        warps = None if wanted.warps is None else replace(wanted.warps, stages=boxes)
        kernel = replace(wanted, warps=warps, stages=wanted.stages if warps else boxes)
        prediction, note = expected_of(facts, variants, profile, kernel)
        if prediction is not None:
            return kernel, prediction, note
    return wanted, None, note


def _threads(facts: KernelFacts, asked: Threads, axes: Sizes) -> tuple[int, ...]:
    """Return the threads along the axes, where ``axes`` are those that PPCG takes by itself."""
    mapped = [loop for loop, _ in axes]
    if isinstance(asked, Mapping):
        fine, texts = {*asked} <= {*mapped}, [f"{loop} {size}" for loop, size in asked.items()]
        threads = tuple(asked.get(loop, size) for loop, size in axes)
    else:
        fine, texts, threads = len(asked) == len(mapped), [*map(str, asked)], tuple(asked)
    if fine:
        return threads
    number = "one number" if len(mapped) == 1 else f"{len(mapped)} numbers, the last one along x"
    raise input_error(
        "EATSS-K001",
        f"{facts.name} has threads along {', '.join(mapped)}, and its block is {', '.join(texts)}",
        hint=f"give {number}, or threads by loop, like {mapped[-1]}=32",
    )


def _expectation(
    facts: KernelFacts,
    profile: GpuProfile,
    tiles: Mapping[str, int],
    block: Threads,
    options: PpcgOptions,
) -> KernelExpectation:
    model = PpcgModel.of(facts, profile)
    kernel = model.kernel
    usual = default_vector(kernel) if kernel.threads else ()
    depth = len(kernel.band)
    threads = usual[depth:]
    if kernel.threads:
        threads = _threads(facts, block, tuple(zip(kernel.threads, threads, strict=True)))
    sizes = tuple(tiles.get(name, size) for name, size in zip(kernel.band, usual, strict=False))
    demand, expected = model.columns(candidates(kernel, (sizes + threads,), options))
    predicted = prediction_at(demand, expected, 0)
    return KernelExpectation(
        name=facts.name,
        statements=facts.statements,
        tile_sizes=tuple(zip(kernel.band, sizes, strict=False)),
        block=tuple(zip(kernel.threads, threads, strict=False)),
        predicted=predicted,
        default=prediction_at(*model.columns(candidates(kernel, (usual,), PPCG_DEFAULT)), 0),
        note=too_large(demand, model.card, 0) if predicted is None else None,
    )


_BYTES_OF_DOUBLE, _BYTES_OF_FLOAT = 8, 4

_FORMATS: Mapping[int, TensorFormat] = {8: "fp64", 2: "fp16", 1: "int8"}
"""What tensor cores multiply of elements of so many bytes, without a request."""


def least_time_s(
    kernels: Sequence[KernelFacts],
    on_host: Mapping[str, float],
    profile: GpuProfile,
    *,
    tf32: bool = False,
) -> float:
    """Return the time of the work at the roofline: arithmetic at its peak, each byte moved once.

    It is no less than a launch of each kernel. ``on_host`` are the bytes of arrays that
    statements on the host touch. ``tf32``: tensor cores may multiply floats.
    """
    formats = {**_FORMATS, _BYTES_OF_FLOAT: "tf32"} if tf32 else _FORMATS
    arithmetic_s = 0.0
    moved = dict(on_host)
    for facts in kernels:
        launches = facts.work.launches or 1
        sizes = {one.name: float(one.elements * one.element_bytes) for one in facts.work.arrays}
        for statement in facts.work.statements:
            operations, adds_products = _operations(statement)
            peak = _peak_gflops(profile, statement, formats if adds_products else {})
            if peak is not None:
                arithmetic_s += (statement.instances or 0) * operations / (1e9 * peak)
            for access in statement.accesses:
                touched = () if access.touched is None else (access.touched,)
                own = min(sizes[access.array], launches * touched_bytes(touched))
                moved[access.array] = max(moved.get(access.array, 0.0), own)
    launched_s = max(1, len(kernels)) * card_of(profile).launch_s
    return max(launched_s, arithmetic_s, sum(moved.values()) / (1e9 * profile.bandwidth_gb_s))


def _peak_gflops(
    profile: GpuProfile, statement: StatementFacts, formats: Mapping[int, TensorFormat]
) -> float | None:
    """Return the peak of a statement's arithmetic; ``formats`` are those of tensor cores."""
    wide = statement.element_bytes >= _BYTES_OF_DOUBLE
    plain = profile.peak_fp64_gflops if wide else profile.peak_fp32_gflops
    form = formats.get(min((one.element_bytes for one in statement.accesses), default=0))
    tensor = None if form is None else profile.peak_tensor_gflops(form)
    return plain if tensor is None else tensor


def _operations(statement: StatementFacts) -> tuple[int, bool]:
    """Return the operations of an instance at least, and whether they add products.

    Those whose value several instances share are left out. What adds products has a multiplication
    for each addition: other factors may wait until the sum is there. A product of integers counts
    as two, with its sum.
    """
    counts = dict(statement.operations)
    shared = sum(often for _, kinds in statement.repeated for _, often in kinds)
    every, additions = sum(counts.values()) - shared, counts.get("add", 0)
    products = additions > 0 and "multiply" in counts
    own = min(every, 2 * additions) if products else every
    return own + 2 * statement.integer_products, products or statement.integer_products > 0


def program_rows(found: Selection | ProgramExpectation) -> list[JsonObject]:
    """Return a row a kernel; sizes of tiles and threads are columns by the names of loops."""
    about: JsonObject = {name: getattr(found, name) for name in ("file", "gpu", "dtype")}
    about |= {"target": found.target, "sizes": sizes_text(found.sizes)}
    if isinstance(found, Selection):
        about["objective"] = found.objective
    tiled = dict.fromkeys(loop for kernel in found.kernels for loop, _ in kernel.tile_sizes)
    mapped = dict.fromkeys(loop for kernel in found.kernels for loop, _ in kernel.block)
    rows = []
    for kernel in found.kernels:
        tiles, threads = dict(kernel.tile_sizes), dict(kernel.block)
        row = about | {"kernel": kernel.name, "statements": " ".join(kernel.statements)}
        row |= {f"tile_{loop}": tiles.get(loop) for loop in tiled}
        row |= {f"threads_{loop}": threads.get(loop) for loop in mapped}
        if isinstance(kernel, KernelSelection):
            row["objective_value"] = kernel.objective
            row |= {name: getattr(kernel, name) for name in _OF_SELECTION}
        for which, one in (("predicted", kernel.predicted), ("default", kernel.default)):
            row |= {f"{which}_{name}": getattr(one, name, None) for name in _OF_PREDICTION}
        rows.append(row | {"note": kernel.note})
    return rows


_OF_SELECTION = (
    "threads_per_block", "split_factor", "warp_fraction", "optimal", "keeps_default",
    "solve_time_s",
)  # fmt: skip
_OF_PREDICTION = ("time_s", "energy_j", "power_w", "bound")
