"""The selection: tile sizes of every kernel of a program, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from math import prod
from typing import TYPE_CHECKING, Annotated, Any, Literal

from eatss.analysis.layout import ClassBlock, FusedRows, Layout, LoopBlock, Sizes, TimeTile
from eatss.analysis.variant import Rewrites
from eatss.base.codec import BY_NAME, Document, JsonForm, JsonObject
from eatss.base.diagnostics import Diagnostic, Diagnostics, input_error
from eatss.base.frozen import Names, frozen
from eatss.base.shown import (
    ExpectedRun,
    OfRun,
    ProgramSize,
    Tabular,
    in_lines,
    pairs_text,
    run_of,
    sizes_text,
)
from eatss.base.targets import TARGETS, TargetName
from eatss.choose.options import PUBLISHED, ModelOptions
from eatss.cost.expected import Prediction

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts, ReferenceFacts
from eatss.base.diagnostics import Severity

SCHEMA_VERSION = 5
"""Version of the JSON form; it grows when a reader of the old form would fail."""

NOT_TILED = "no loop of it is parallel: it runs in one thread and has nothing to tile"

Placement = Literal["l1", "shared", "private"]

Optimality = Literal["proven", "best found"]


@frozen
class Usage:
    """How much of one limit a tile uses.

    ``binding`` says that the limit stops at least one tile size from growing a step.
    """

    name: str
    title: str
    used: int
    available: int
    unit: str
    binding: bool


@frozen
class ReferenceSelection:
    """A reference of a kernel [EATSS, Table II].

    ``memory`` is its class, where it belongs; ``placement`` is where this selection has
    it: at split 0 there is no shared memory, and everything goes through L1.
    """

    array: str
    access: str
    statements: Names
    memory: Literal["l1", "shared"]
    placement: Placement
    cma: bool
    temporal: Names
    spatial: Names

    @classmethod
    def at(cls, reference: ReferenceFacts, placement: Placement) -> ReferenceSelection:
        """Return a reference in the place that a selection has for it."""
        return cls(
            array=reference.array,
            access=reference.access,
            statements=reference.statements,
            memory=reference.memory.value,
            placement=placement,
            cma=reference.cma,
            temporal=reference.temporal,
            spatial=reference.spatial,
        )


@frozen
class PpcgOptions:
    """Options of PPCG that hold for a whole program; ``max_shared_memory`` is in bytes."""

    max_shared_memory: int
    unroll_gpu_tile: bool


@frozen
class CellResult:
    """The optimum in one cell of the grid.

    ``traffic`` is the estimated traffic from L2, in elements per iteration point.
    """

    split_factor: float
    warp_fraction: float
    tile_sizes: Sizes
    objective: int
    optimal: Optimality
    traffic: float


@frozen
class DroppedCell:
    """A cell of the grid without a solution: which limits exclude it, and why."""

    split_factor: float
    warp_fraction: float
    constraints: Names
    reason: str


def layout_text(layout: Layout) -> str:
    """Return tile sizes and threads, ``tiles i 16, j 384; threads i 4, j 64``."""
    block = f"; threads {pairs_text(layout.block)}" if layout.block else ""
    return f"tiles {pairs_text(layout.tile_sizes) or 'none'}{block}"


@frozen
class KernelSelection(Layout):
    """The tile sizes of one kernel.

    With one vector for the program, ``optimal``, ``solver_calls`` and ``solve_time_s`` are those of
    the program's problem.

    Attributes:
        name: ``"kernel0"``.
        index: Its place in the order of launches, from 0.
        statements: Those that it runs, ``("S0", "S1")``.
        host_loops: Loops around it that the host runs.
        loops: Loops of its band, outermost first.
        parallel: Those of them that are parallel.
        inner_loops: Loops inside a tile that are not tiled.
        cma_loop: The parallel loop along which most references walk memory, ``None`` if none.
        tile_sizes: Pairs of a loop of the band, outermost first, and its size in points; none for a
            kernel that runs in one thread, as ``note`` says.
        objective: Value of the objective: ``OBJ`` of the published models, else nanojoules or what
            the objective counts.
        objective_formula: The objective as text.
        weights: Pairs of a loop and its weight ``H_i`` in the objective.
        optimal: ``"proven"``, within the gap that was asked for where a prediction is least; or
            ``"best found"`` where time or steps ran out.
        bound: What no sizes that fit the card cost less than, in the unit of ``objective``, margins
            by which they have to be better counted; 0 where nothing is known.
        boxes: Boxes of sizes that were bounded for it.
        split_factor: Share of L1 that is shared memory, from 0 to 1.
        warp_fraction: Share of a warp that sizes are multiples of.
        alignment: Points that sizes are multiples of.
        traffic: Elements from L2 for each iteration point, an estimate.
        block: Pairs of a loop that maps to threads and its threads; the last is ``threadIdx.x``.
        shared_limit_bytes: Bytes of shared memory that the model let a block have.
        solver_calls: How often the solver was asked.
        solve_time_s: Seconds that choosing took; takes no part in comparison.
        references: Each reference with its memory class, placement and reuse.
        distinct_references: References that touch different cache lines.
        usage: How much of each limit a tile uses.
        alternatives: The optima of other cells of the grid, the best first.
        dropped: Cells of the grid without a solution, and why.
        cells: How many cells the grid has.
        note: What is to be said of it, ``None`` for nothing.
        compared: Layouts that were priced.
        predicted: What the model expects of these sizes, in s and J; ``None`` where the objective
            is no prediction, or they do not launch.
        default: The same of the sizes that the target takes by itself.
        keeps_default: Whether these are those.
        spread: How generated code spreads the sums of the kernel over threads and blocks.
        sum_loops: The loops of these sums.
        sum_kinds: What sums that are spread or shared are: ``"sum"``, ``"maximum"``, ….
        shared_sum: How blocks of generated code share sums that are not spread.
        warps: The instruction by which warps of generated code compute its products.
        stages: Buffers in shared memory where threads compute alone.
        resident: Blocks of an SM that are to run at a time then; it bounds registers.
        row_block: How this kernel and those behind it become one, whose blocks take rows through
            all of them. ``predicted`` is of that one, and nothing is left for the others.
        time_tile: How this kernel and those behind it take several steps of a loop over time at
            once; ``predicted`` is of all steps, and nothing is left for the others.
        class_block: How this kernel and those behind it take all steps of a class of tiles in one
            launch; ``predicted`` is of that one, and nothing is left for the others.
        loop_block: How one block runs the host loop around this kernel and those behind it;
            ``predicted`` is of all of the loop, and nothing is left for the others.
    """

    json_layout = JsonForm(
        also=("threads_per_block",),
    )

    name: str
    index: int
    statements: Names
    host_loops: Names
    loops: Names
    parallel: Names
    inner_loops: Names
    cma_loop: str | None
    objective: int
    objective_formula: str
    weights: Sizes
    optimal: Optimality
    split_factor: float
    warp_fraction: float
    alignment: int
    traffic: float
    shared_limit_bytes: int
    solver_calls: int
    solve_time_s: float = field(compare=False)
    references: tuple[ReferenceSelection, ...]
    distinct_references: int
    usage: Annotated[tuple[Usage, ...], BY_NAME]
    alternatives: tuple[CellResult, ...] = ()
    dropped: tuple[DroppedCell, ...] = ()
    cells: int = 1
    note: str | None = None
    compared: int = 0
    bound: int = 0
    boxes: int = 0
    predicted: Prediction | None = None
    default: Prediction | None = None
    keeps_default: bool = False
    sum_loops: Names = ()
    sum_kinds: Names = ()

    @classmethod
    def of(cls, facts: KernelFacts, layout: Layout, **found: Any) -> KernelSelection:
        """Return the selection of a layout of a kernel; what is not ``found`` is neutral."""
        tiled = bool(layout.tile_sizes)
        neutral: JsonObject = {
            "objective": 0,
            "objective_formula": "0",
            "weights": (),
            "optimal": "proven",
            "split_factor": 0.0,
            "warp_fraction": 1.0,
            "alignment": 1,
            "traffic": 0.0,
            "shared_limit_bytes": 0,
            "solver_calls": 0,
            "solve_time_s": 0.0,
            "usage": (),
            "note": None if tiled else NOT_TILED,
        }
        return cls(
            **layout.chosen(),
            name=facts.name,
            index=facts.index,
            statements=facts.statements,
            host_loops=facts.host_loops,
            loops=tuple(loop for loop, _ in layout.tile_sizes),
            parallel=tuple(loop.name for loop in facts.parallel_loops) if tiled else (),
            inner_loops=tuple(loop.name for loop in facts.inner_loops),
            cma_loop=facts.cma_loop,
            distinct_references=facts.distinct_references,
            **(neutral | found),
        )

    def __repr__(self) -> str:
        if not self.tile_sizes and self.spread is None:
            return f"<KernelSelection {self.name}: not tiled, {self.note}>"
        one = self.predicted
        found = f"objective {self.objective}" if one is None else f"{one.amounts} expected"
        return f"<KernelSelection {self.name}: {layout_text(self)}; {found}; {self.optimal}>"

    @property
    def gap(self) -> float | None:
        """How far under these sizes others might be, as a share; ``None`` where it is not known."""
        return 1.0 - self.bound / self.objective if self.bound else None

    @property
    def shared(self) -> frozenset[int]:
        """The references in shared memory, by position."""
        placed = enumerate(self.references)
        return frozenset(at for at, one in placed if one.placement == "shared")

    @property
    def threads_per_block(self) -> int:
        """Threads of one block."""
        return prod(size for _, size in self.block)


def in_one_launch(
    selections: Mapping[str, KernelSelection],
    join: FusedRows | TimeTile | ClassBlock | LoopBlock,
    predicted: Prediction,
    note: str,
) -> dict[str, KernelSelection]:
    """Return the selections of kernels that are one: the first has what is expected of it.

    ``note`` is of the others.
    """
    first, *others = join.kernels
    field_of = {
        FusedRows: "row_block",
        TimeTile: "time_tile",
        ClassBlock: "class_block",
        LoopBlock: "loop_block",
    }
    how: dict[str, Any] = {field_of[type(join)]: join}
    found = {first: replace(selections[first], predicted=predicted, **how)}
    for name in others:
        own = selections[name].predicted
        assert own is not None
        nothing = replace(own, time_s=0.0, energy_j=0.0, times_s=(), energies_j=(), launches=0)
        found[name] = replace(selections[name], predicted=nothing, note=note)
    return found


def ppcg_sizes(selection: Selection) -> str | None:
    """The argument of ``ppcg --sizes``, ``None`` for another target."""
    return selection.ppcg_sizes if not TARGETS[selection.target].own else None


def ppcg_max_shared_memory(selection: Selection) -> int | None:
    """The argument of ``ppcg --max-shared-memory`` in bytes, ``None`` for another target."""
    return selection.ppcg_max_shared_memory if not TARGETS[selection.target].own else None


def ppcg_arguments(selection: Selection) -> tuple[str, ...] | None:
    """All arguments that PPCG needs, ``None`` for another target."""
    return selection.ppcg_arguments if not TARGETS[selection.target].own else None


@frozen
class Selection(Rewrites, OfRun, Tabular):
    """Tile sizes of all kernels of a program on one card.

    Attributes:
        file: The source, as it was named.
        functions: Functions with a region.
        host_statements: ``"function: S0"``, in no kernel, because nothing is parallel there.
        host_time_s: Seconds that these take there at least, for PPCG's code; ``None`` where they
            cannot be counted.
        gpu: Name of the card's profile.
        dtype: ``"float"`` or ``"double"``.
        options: What sizes were selected for.
        kernels: One for each kernel, in the order of launches.
        static_shared_bytes: Bytes of shared memory a block may have without opting in to more.
        calibrated: Whether figures of such a card were measured (``eatss characterize``);
            predictions for others rest on scaled ones.
        uniform_sizes: The program's one vector of tile sizes, outermost first, where one was asked
            for.
        ppcg_options: Options of PPCG, chosen with the sizes where the objective is a prediction of
            PPCG's code.
        schema_version: Of the JSON form.
        warnings: Why PPCG's kernels may be others than these, and notes on loops that run slowly.
        sizes: What is expected of the kernels is for these sizes of the program.
        least_time_s: Time of the work of a run at the roofline of the card, in s.
    """

    json_layout = JsonForm(
        also=(
            "target",
            "objective",
            "model",
            "optimal",
            "time_s",
            "energy_j",
            ppcg_sizes,
            ppcg_max_shared_memory,
            ppcg_arguments,
        ),
        closed=True,
    )
    shown_by = "selection"
    rows_by = "eatss.choose.expectation:program_rows"

    file: str
    functions: Names
    host_statements: Names = ()
    host_time_s: float | None = 0.0
    gpu: str
    dtype: str
    options: ModelOptions
    kernels: tuple[KernelSelection, ...]
    static_shared_bytes: int
    calibrated: bool
    uniform_sizes: tuple[int, ...] | None = None
    ppcg_options: PpcgOptions | None = None
    schema_version: int = SCHEMA_VERSION
    warnings: Diagnostics = ()
    sizes: tuple[ProgramSize, ...] = ()
    least_time_s: float = 0.0

    def __repr__(self) -> str:
        run = self.expected
        about = sizes_text(self.sizes) if run is None else f"{run}"
        return in_lines(
            f"Selection {self.file}: {self.gpu}, {self.dtype}, target {self.target}, "
            f"objective {self.objective}, {about}",
            [repr(kernel)[len("<KernelSelection ") : -1] for kernel in self.kernels],
        )

    @property
    def expected(self) -> ExpectedRun | None:
        """What a run is expected to take, ``None`` where that is not known of all of it."""
        return self._run([kernel.predicted for kernel in self.kernels])

    @property
    def expected_of_default(self) -> ExpectedRun | None:
        """The same of the sizes that PPCG takes by itself."""
        return self._run([kernel.default for kernel in self.kernels])

    def _run(self, kernels: Sequence[Prediction | None]) -> ExpectedRun | None:
        return run_of(
            kernels,
            host_time_s=self.host_time_s,
            least_time_s=self.least_time_s,
            sizes=self.sizes,
        )

    @property
    def target(self) -> TargetName:
        """What makes code from the sizes."""
        return self.options.target

    @property
    def objective(self) -> str:
        """What is best."""
        return self.options.objective

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.options.model

    @property
    def keeps_default(self) -> bool:
        """Whether every kernel keeps the sizes that the target takes by itself."""
        return self.ppcg_options is not None and all(k.keeps_default for k in self.kernels)

    @property
    def optimal(self) -> Optimality:
        """``proven`` where every kernel's sizes are."""
        proven = all(kernel.optimal == "proven" for kernel in self.kernels)
        return "proven" if proven else "best found"

    @property
    def lasts(self) -> bool:
        """Whether choosing again would give the same: a clock took no part in it."""
        asked = self.options.timeout_s, self.options.gap
        steps_alone = self.model not in PUBLISHED and asked == (None, None)
        return steps_alone or self.optimal == "proven"

    @property
    def ppcg_sizes(self) -> str:
        """The argument of ``ppcg --sizes``.

        Kernels that run in one thread have nothing to size and are left out, and so are those that
        keep PPCG's own sizes.

        Raises:
            InputError: ``EATSS-C012``, the sizes were selected for generated code.
        """
        self._require_ppcg()
        sized = (k for k in self.kernels if k.tile_sizes and not k.keeps_default)
        entries = "; ".join(entry for kernel in sized for entry in _ppcg_entries(kernel))
        return f"{{ {entries} }}" if entries else "{ }"

    @property
    def ppcg_max_shared_memory(self) -> int:
        """The argument of ``ppcg --max-shared-memory``, in bytes.

        PPCG has one limit for the whole program, so it is the largest of the kernels'
        limits, and 0 where no kernel uses shared memory. PPCG declares shared arrays
        statically, which never gives a block more than the default limit of the card.
        """
        if self.ppcg_options is not None:
            return self.ppcg_options.max_shared_memory
        limits = [kernel.shared_limit_bytes for kernel in self.kernels if kernel.tile_sizes]
        return min(max(limits, default=0), self.static_shared_bytes)

    @property
    def ppcg_arguments(self) -> tuple[str, ...]:
        """All arguments of PPCG that the selection needs, none where PPCG's default stands.

        Raises:
            InputError: ``EATSS-C012``, the sizes were selected for generated code.
        """
        self._require_ppcg()
        if self.keeps_default:
            return ()
        unroll = self.ppcg_options is not None and self.ppcg_options.unroll_gpu_tile
        return (
            f"--max-shared-memory={self.ppcg_max_shared_memory}",
            *(("--unroll-gpu-tile",) if unroll else ()),
            f"--sizes={self.ppcg_sizes}",
        )

    def _require_ppcg(self) -> None:
        if TARGETS[self.options.target].own:
            raise input_error(
                "EATSS-C012",
                f"these sizes were selected for the target {self.options.target}, not for PPCG",
                hint="select for the target ppcg",
            )

    def kernel(self, name: str) -> KernelSelection:
        """Return the kernel called ``name``; ``KeyError`` if there is none."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)

    def to_dict(self) -> JsonObject:
        """Return the selection as plain JSON types."""
        return SELECTION.to_dict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Selection:
        """Read what :meth:`to_dict` wrote.

        Raises:
            InputError: ``EATSS-M010``, it is of another version or damaged.
        """
        return SELECTION.from_dict(document)


def _ppcg_entries(kernel: KernelSelection) -> list[str]:
    """Return what ``ppcg --sizes`` says of a kernel, an isl union map's entries.

    PPCG numbers kernels from 0 in launch order. The leading parallel members of a band, at most
    three, map to threads; the last of them to ``threadIdx.x``. PPCG's own block sizes (512,
    32 × 16, 32 × 4 × 4) need not launch where a thread takes many registers, so sizes of ours
    always stand beside the tile.
    """
    domain = f"kernel[{kernel.index}]"
    entries = [f"{domain} -> tile[{', '.join(str(size) for _, size in kernel.tile_sizes)}]"]
    if kernel.block:
        entries.append(f"{domain} -> block[{', '.join(str(size) for _, size in kernel.block)}]")
    return entries


SELECTION = Document(
    title="selection",
    kind=Selection,
    other_version="EATSS-M010",
    damaged="EATSS-M010",
    hint="write it anew with eatss select --format json",
)


PPCG_SHARED_BYTES = 8192
"""PPCG's ``--max-shared-memory`` where it is told nothing."""

PPCG_DEFAULT = PpcgOptions(max_shared_memory=PPCG_SHARED_BYTES, unroll_gpu_tile=False)
"""Options that PPCG takes by itself."""


def sizes_alone(selection: Selection) -> Diagnostics:
    """Return a warning where ``--sizes`` is not all that a predicted selection asks of PPCG."""
    options = selection.ppcg_options
    if options is None or selection.keeps_default:
        return ()
    if options.max_shared_memory == PPCG_SHARED_BYTES and not options.unroll_gpu_tile:
        return ()
    return (
        Diagnostic(
            code="EATSS-M015",
            severity=Severity.WARNING,
            message="these sizes were chosen together with --max-shared-memory="
            f"{options.max_shared_memory}, which PPCG is not told by --sizes",
            hint="take --format ppcg-args, which prints both",
        ),
    )
