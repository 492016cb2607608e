"""What the user wants of generated code, and recipes: all that a model and the user decided.

A generator carries a recipe out. So a recipe that was kept makes the same code again, whatever a
model would choose today. It stands on its own as JSON, and in the plan of a program.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from eatss.analysis.layout import Chosen, GridSplitK, Layout
from eatss.analysis.variant import MAX_STAGES, Rewrites
from eatss.base.codec import Document, JsonForm
from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.base.frozen import Names, called, frozen
from eatss.base.options import (
    Words,
    option,
    parse_blocks,
    parse_numbers,
    parse_placements,
    parse_tiles,
    shows_types,
)
from eatss.program.expression import OwnSizes, SizePairs

if TYPE_CHECKING:
    from eatss.choose.selection import Selection


_option = partial(option, panel="Code")

Tiles: TypeAlias = Mapping[str, int | Mapping[str, int]]
"""Sizes by loop, for every kernel, or by kernel and loop."""

Block: TypeAlias = Sequence[int] | Mapping[str, int | Sequence[int] | Mapping[str, int]]
"""Threads in the order of the loops, the last along ``x``, or by loop; for every kernel, or by
kernel."""


@dataclass(frozen=True, kw_only=True)
class SizeKeywords:
    """Sizes and placements of the user instead of what is selected.

    Attributes:
        tiles: Tile sizes instead of the selected ones, by loop (``{"i": 32}``) or by kernel and
            loop (``{"kernel0": {"i": 32}}``).
        block: Threads of a block in the order of the loops (``(8, 32)``), the last one along
            ``x``, or by loop (``{"i": 8, "j": 32}``); also by kernel, in a mapping.
        placements: ``"l1"`` or ``"shared"`` for arrays (``"A"``) and references (``"A[i][k]"``) in
            code of eatss.
        share: Blocks that share the sum over a loop, by loop (``{"k": 32}``); 1 for none. By
            default as selected.
        stream: Blocks that take equal shares of the turns of a loop, of all tiles, by loop
            (``{"k": 132}``), so that few tiles keep all of the card busy; 1 for none. By default
            as selected.
    """

    tiles: Annotated[
        Tiles | None,
        _option(
            "--tile",
            kind=Words,
            made=parse_tiles,
            metavar="[KERNEL:]LOOP=SIZE,...",
            help="Tile sizes of your own, for all kernels or for one (k0:).",
        ),
    ] = None
    block: Annotated[
        Block,
        _option(
            kind=Words,
            made=parse_blocks,
            metavar="[KERNEL:]THREADS,...",
            help="Threads of a block in the order of the loops, the last along x, or by loop "
            "(LOOP=THREADS,...).",
        ),
    ] = ()
    placements: Annotated[
        Mapping[str, str] | None,
        _option(
            "--place",
            kind=Words,
            made=parse_placements,
            metavar="REFERENCE=shared|l1",
            help="Memory of an array (A) or a reference ('A[i][k]') in code of eatss.",
        ),
    ] = None
    share: Annotated[
        Mapping[str, int] | None,
        _option(
            kind=Words,
            made=partial(parse_numbers, "--share", "k=32"),
            metavar="LOOP=BLOCKS,...",
            help="Blocks that share the sum over a loop; 1 for none. By default as selected.",
        ),
    ] = None
    stream: Annotated[
        Mapping[str, int] | None,
        _option(
            kind=Words,
            made=partial(parse_numbers, "--stream", "k=32"),
            metavar="LOOP=BLOCKS,...",
            help="Stream-K: blocks that share a loop's k-tiles evenly, of all tiles; 1 for none. "
            "By default as selected.",
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class CodeOptions:
    """What is decided about all of the code, asked for as it is carried out.

    Attributes:
        strict_fp: Keep the order of every floating-point operation.
        fast_math: Let divisions and roots of floats be approximate, and their subnormals 0.
        index_bits: Width of index arithmetic; by default the narrowest that is proven to do.
        line_info: Let compilers, debuggers and profilers name lines of the C source.
        instructions: Instructions of tensor cores that take the place of products, by name
            (``eatss.lower.instructions.INSTRUCTIONS``).
        stages: Buffers in shared memory of a multistage pipeline: all but one are filled ahead; by
            default as selected.
        fuse_rows: Let kernels that share rows or points, or small steps of a loop on the host,
            become one, where that is selected; with sizes, blocks or places of your own they stay
            apart.
    """

    strict_fp: Annotated[
        bool,
        _option(
            "--strict-fp",
            help="Keep the order of every floating-point operation: no sum of them is split.",
        ),
    ] = False
    fast_math: Annotated[
        bool,
        _option(
            "--fast-math",
            help="Floats: divisions and roots within 2 units in the last place, subnormals are 0.",
        ),
    ] = False
    index_bits: Annotated[
        Literal[32, 64] | None,
        _option(
            "--index",
            kind=Literal["auto", "32", "64"],
            default="auto",
            made=lambda word: None if word == "auto" else int(word),
            help="Bits of index arithmetic; auto: the fewest that are proven to do.",
        ),
    ] = None
    line_info: Annotated[
        bool, _option("--line-info", help="Map the code back to lines of the C file.")
    ] = False
    instructions: Annotated[
        Sequence[str],
        _option(
            "--instruction",
            kind=Words,
            made=tuple,
            metavar="NAME",
            help="Compute products by an instruction of tensor cores, as mma_tf32_16x8x8.",
        ),
    ] = ()
    stages: Annotated[
        int | None,
        _option(
            metavar="N",
            min=1,
            max=MAX_STAGES,
            help="Buffers in shared memory of a multistage pipeline: N - 1 k-tiles are "
            "copied ahead (compute capability 8.0). By default as selected.",
        ),
    ] = None
    fuse_rows: Annotated[
        bool,
        _option(
            "--fuse-rows/--no-fuse-rows",
            help="Let kernels that share rows or points, or small steps of a host loop, become "
            "one, where that is selected.",
        ),
    ] = True

    def __post_init__(self) -> None:
        """Refuse operations that are approximate and exact at once.

        Raises:
            InputError: ``EATSS-K019``.
        """
        if self.strict_fp and self.fast_math:
            raise input_error(
                "EATSS-K019",
                "operations that are approximate are not those of the source",
                hint="leave out --fast-math or --strict-fp",
            )


@dataclass(frozen=True, kw_only=True)
class CodeRequest(CodeOptions, SizeKeywords):
    """What the user wants of generated code instead of what is selected.

    Attributes:
        tile_time: Let several steps of a loop over time, or of a factorisation, become one launch
            where that is expected to cost less: time tiles, classes of tiles. With sizes, blocks or
            places of your own steps stay apart.
    """

    tile_time: Annotated[
        bool,
        _option(
            "--tile-time/--no-tile-time",
            help="Let several steps of a loop over time, or of a factorisation, become one launch, "
            "where that is expected to cost less.",
        ),
    ] = True

    @property
    def lays_out(self) -> bool:
        """Whether the user says how kernels are laid out, so that none become one."""
        return bool(self.tiles or self.block or self.placements or self.share or self.stream)

    @property
    def joins(self) -> dict[str, bool]:
        """How kernels may become one, as keywords of :meth:`eatss.session.Session.select`."""
        ways = {"fuse_rows": self.fuse_rows, "tile_time": self.tile_time}
        return {name: on and not self.lays_out for name, on in ways.items()}

    def __post_init__(self) -> None:
        """Refuse names that nothing has.

        Raises:
            InputError: ``EATSS-C004``, something of another kind than it takes, such as one string
                instead of several; ``EATSS-K019``, approximate and exact at once; ``EATSS-X005``.
        """
        by_name, listed = "say what is which, by name: {'k': 4}", "give a list of names"
        for name, kinds, hint in (
            *((name, Mapping, by_name) for name in ("tiles", "placements", "share", "stream")),
            ("block", Mapping | Sequence, "give threads by order, (32, 8), or loop, {'i': 8}"),
            ("instructions", Sequence, listed),
        ):
            value = getattr(self, name)
            if isinstance(value, str | bytes) or not isinstance(value, kinds | None):
                raise input_error("EATSS-C004", f"{name} is {value!r}", hint=hint)
        super().__post_init__()
        for name in self.instructions:
            from eatss.lower.instructions import of_warps  # noqa: PLC0415 - most requests name none

            of_warps(name)


def compact(text: str) -> str:
    """Return the text of a reference without spaces."""
    return "".join(text.split())


@frozen
class NamedThreads:
    """Threads of a block by loop; what is not named has one."""

    threads: SizePairs


@shows_types
@dataclass(frozen=True, kw_only=True)
class CodegenOptions(CodeOptions):
    """Options of code generation.

    ``tile_sizes`` and ``block`` replace what is selected, for the kernel of that name or, with
    ``""``, for every kernel: tile sizes by loop name, threads by loop name or in the order of the
    loops, the last one along ``x``. ``placements`` puts references, by array or by text
    (``A[i][k]``), into ``l1`` or ``shared`` memory. ``shared_limit_bytes`` bounds a block's shared
    memory, ``None`` for all that the card lets a block opt in to. ``shared_sums`` says for kernels
    by name how blocks share their sums, instead of what is selected.
    """

    tile_sizes: tuple[tuple[str, SizePairs], ...] = ()
    block: tuple[tuple[str, tuple[int, ...] | NamedThreads], ...] = ()
    placements: tuple[tuple[str, Literal["l1", "shared"]], ...] = ()
    shared_limit_bytes: int | None = None
    transformations: tuple[()] = ()  # recipes of before have it
    instructions: Names = ()
    shared_sums: tuple[tuple[str, GridSplitK], ...] = ()

    @property
    def keeps_apart(self) -> bool:
        """Whether no kernels become one: the user says so, or says how each of them is laid out."""
        return self._lays_out or not self.fuse_rows

    @property
    def _lays_out(self) -> bool:
        return bool(self.tile_sizes or self.block or self.placements or self.shared_sums)

    def tiles_of(self, kernel: str) -> OwnSizes:
        """Return the tile sizes that the user wants for a kernel, by loop."""
        of = (sizes for name, sizes in self.tile_sizes if name in ("", kernel))
        return {loop: size for sizes in of for loop, size in sizes}

    def placed(self, names: Iterable[str]) -> Literal["l1", "shared"] | None:
        """Return the memory that the user wants for references of these arrays or texts, if any."""
        known = {compact(one) for one in names}
        found = (memory for name, memory in self.placements[::-1] if compact(name) in known)
        return next(found, None)

    def changed(self, chosen: Chosen, kernel: str) -> Chosen:
        """Return what is chosen for a kernel as the user changes it, but for sizes and places.

        Streams, boxes ahead where threads compute alone, and blocks that an SM is to have at a
        time, go with selected sizes only.
        """
        sized = bool(self.tile_sizes or self.block)
        shared = chosen.shared_sum
        if sized and shared is not None and shared.streamed:
            shared = None
        for name, own in self.shared_sums:
            if name == kernel:
                shared = own if own.blocks > 1 else None
        warps, resident = chosen.warps, chosen.resident
        if sized or self.stages is not None:
            resident = 1
            stages = self.stages or (1 if warps is None else warps.stages)
            warps = None if warps is None else replace(warps, stages=stages, resident=1)
        return replace(
            chosen,
            shared_sum=None if self.strict_fp else shared,
            warps=None if self.strict_fp else warps,
            stages=self.stages or (1 if sized else chosen.stages),
            resident=resident,
            row_block=None if self.keeps_apart else chosen.row_block,
            time_tile=None if self._lays_out else chosen.time_tile,
            class_block=None if self._lays_out else chosen.class_block,
            loop_block=None if self.keeps_apart else chosen.loop_block,
        )

    @property
    def changes_layout(self) -> bool:
        """Whether blocks are laid out otherwise than selected."""
        return self._lays_out or self.stages is not None


SCHEMA_VERSION = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class PlacedReference:
    """A reference of some statements, and the memory that it was given.

    ``access`` is its text (``A[i][k]``).
    """

    array: str
    access: str
    statements: Names
    memory: Literal["l1", "shared", "private"]


@frozen
class KernelRecipe(Layout):
    """What was decided about one kernel."""

    name: str
    statements: Names
    references: tuple[PlacedReference, ...]


@frozen
class Recipe(Rewrites):
    """Everything that was decided about the code of a program on a card.

    ``kernels`` are what a model chose, ``options`` what the user wants instead or besides.
    """

    json_layout = JsonForm(closed=True)

    gpu: str
    dtype: str
    kernels: tuple[KernelRecipe, ...]
    options: CodegenOptions = dataclasses.field(default_factory=CodegenOptions)
    schema_version: int = SCHEMA_VERSION

    def wanted(self, name: str) -> KernelRecipe:
        """Return what was decided about a kernel, as the user changes it."""
        return self.options.changed(self.kernel(name), name)

    def kernel(self, name: str) -> KernelRecipe:
        """Return what was decided about a kernel; ``KeyError`` if there is none of that name."""
        return called(name, self.kernels)


def recipe_of(selection: Selection, options: CodegenOptions) -> Recipe:
    """Return what a model and the user decided about a program."""
    kernels = tuple(
        KernelRecipe(
            **selected.chosen(),
            name=selected.name,
            statements=selected.statements,
            references=tuple(
                PlacedReference(
                    array=reference.array,
                    access=reference.access,
                    statements=reference.statements,
                    memory=reference.placement,
                )
                for reference in selected.references
            ),
        )
        for selected in selection.kernels
    )
    return Recipe(
        gpu=selection.gpu,
        dtype=selection.dtype,
        kernels=kernels,
        options=options,
        **selection.rewriting(),
    )


PLAN = "plan.json"
"""Where a folder with a program has its recipe."""

_MOST_BYTES = 64 << 20

RECIPE = Document(
    title="recipe",
    kind=Recipe,
    other_version="EATSS-K017",
    damaged="EATSS-K017",
    hint="write one with: eatss codegen FILE.c --gpu NAME --save-recipe FILE.json",
)
recipe_to_dict, recipe_from_dict, recipe_text = RECIPE.to_dict, RECIPE.from_dict, RECIPE.to_text


def read_recipe(path: Path) -> Recipe:
    """Read a recipe from a file, or from a folder that ``eatss codegen`` wrote.

    Raises:
        InputError: ``EATSS-C008`` it cannot be read, ``EATSS-K017`` it is no recipe.
    """
    place = path / PLAN if path.is_dir() else path
    try:
        document = json.loads(read_regular(place, _MOST_BYTES))
        return recipe_from_dict(document["recipe"] if path.is_dir() else document)
    except OSError as error:
        raise input_error("EATSS-C008", f"cannot read {place}: {error.strerror}") from None
    except (ValueError, TypeError, LookupError, RecursionError):
        raise RECIPE.damage(f"{place} holds none") from None
