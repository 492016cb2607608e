"""A generated program: what its text defines, how it is launched; as JSON and as a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from pkgutil import resolve_name
from typing import Any, Literal, TypeAlias

from eatss.base.codec import Document, JsonForm, JsonObject
from eatss.base.diagnostics import Diagnostic, Diagnostics, Severity, input_error
from eatss.base.files import read_regular
from eatss.base.frozen import Names, called, frozen
from eatss.base.shown import ExpectedRun, Shown, in_lines, pairs_text
from eatss.base.trees import Parts
from eatss.program.expression import IntExpr, IntExprs, Lengths, SizePairs

_COMPILED = "eatss.session.jit.api:compiled"
"""What runs programs; found by its name when it is asked for, because it needs this noun."""

SCHEMA_VERSION = 1
"""Version of the JSON form; it grows when a reader of the old form would fail."""


@frozen
class Parameter:
    """A size the program is generic over.

    A ``macro`` of the source is set when the text is compiled, by the macro ``defined_as``
    (``-DEATSS_SIZE_N=1000``; ``default`` otherwise), in texts of before by its own name; an
    ``argument`` is passed to the entry. ``tile`` is the largest tile along a loop that the
    parameter bounds, 0 if it bounds no tiled loop: sizes around it give full and partial tiles.
    """

    name: str
    kind: Literal["macro", "argument"]
    default: int | None
    tile: int = 0
    defined_as: str | None = None

    @property
    def macro(self) -> str:
        """The macro that sets it in the generated text."""
        return self.defined_as or self.name


Role: TypeAlias = Literal["array", "scalar", "cell", "parameter"]
Place: TypeAlias = Literal["parameter", "global", "local"]
"""What an argument is in the original C."""


@frozen
class Argument:
    """An argument of an entry, in order.

    An array is a device pointer to ``shape`` elements, row-major, ``shape`` in the
    program's parameters. A ``scalar`` is passed by value; it is a number the region only reads.
    A ``cell`` is a device pointer to one element: a scalar the region writes. A
    ``parameter`` is an integer by value. ``element_type`` is the C spelling. ``source`` says
    what it is in the original C: a parameter of the function (``position`` counts them from 0),
    a global variable or a local one called ``source_name``. A parameter by value that the region
    writes is a local variable with a position: callers of the function see nothing of it.
    ``structure`` is the type of a parameter that is one, of which the region uses nothing.
    """

    name: str
    role: Role
    element_type: str
    shape: IntExprs
    reads: bool
    writes: bool
    source: Place
    source_name: str
    position: int | None
    structure: str = ""


@frozen
class Temporary:
    """Device memory the entry allocates for itself: an array local to the region.

    One that is ``zeroed`` has zeros before the first run, or before each: a run leaves what the
    next one may find.
    """

    name: str
    element_type: str
    shape: IntExprs
    zeroed: bool = False


@frozen
class RoundedSums:
    """Sums of products that an instruction rounds more than C does.

    ``statements`` add them up, in ``element_type``. A product may be off by ``product_error`` of
    itself, because its factors are rounded first, or by ``least`` of the other factor where one is
    subnormal. n of them have at most ``sum_roundings`` × n roundings of the type.
    """

    instruction: str
    statements: Names
    element_type: str
    product_error: float
    sum_roundings: float
    least: float

    def __str__(self) -> str:
        unit = {"_Float16": "2^-11", "float": "2^-24", "double": "2^-53"}[self.element_type]
        each = f"{self.sum_roundings:g} n {unit}"
        if self.product_error:
            each = f"({self.product_error:.3g} + {each})"
        return f"a sum of n products by {self.instruction} is within {each} sum |a||b|"


@frozen
class KernelCode:
    """A ``__global__`` function of the text.

    ``block`` are threads in x, y, z. ``shared_bytes`` is shared memory a block needs,
    ``dynamic_shared`` whether it is passed at launch (and needs opting in beyond 48 KiB).
    ``arguments`` are the names passed, in order: arguments and temporaries of the entry, and
    counters of host loops. ``notes`` say in sentences what was decided and why. ``reassociates``
    says that floating-point sums, or other reductions, of it are taken in another order, so that
    results may differ from the original's by rounding, those of maxima by the sign of a zero; so
    they may by the ``inexact_instructions`` that it uses in the place of C's operations, and where
    it ``regroups`` factors: those of products in another order, scalars when a sum is there, or
    adds products one by one. ``rounded_sums`` are those of which instructions round factors, with
    bounds. ``lengths`` are how long tiled loops are, of those that are not as long as a size.
    ``grid_strides`` are the axes along which a block goes on to the tile one grid away, so that any
    number of blocks takes all tiles.
    """

    name: str
    statements: Names
    block: tuple[int, int, int]
    shared_bytes: int
    dynamic_shared: bool
    arguments: Names
    tile_sizes: SizePairs
    notes: Names
    reassociates: bool = False
    inexact_instructions: Names = ()
    regroups: bool = False
    rounded_sums: tuple[RoundedSums, ...] = ()
    lengths: Lengths = ()
    grid_strides: tuple[Literal["x", "y", "z"], ...] = ()

    def __repr__(self) -> str:
        block = " x ".join(map(str, self.block))
        tiles = pairs_text(self.tile_sizes) or "none"
        shared = f", {self.shared_bytes} bytes shared" if self.shared_bytes else ""
        return f"<KernelCode {self.name}: tiles {tiles}; block {block}{shared}>"

    @property
    def bit_exact(self) -> bool:
        """Whether floating-point results have to be those of the original in every bit."""
        return not (self.reassociates or self.inexact_instructions or self.regroups)


@frozen
class Launch:
    """A launch of a kernel; none where an extent of ``grid`` (x, y, z) is not positive."""

    json_layout = JsonForm(tag=("kind", "launch"))

    kernel: str
    grid: tuple[IntExpr, IntExpr, IntExpr]


@frozen
class HostLoop:
    """A loop on the host: ``counter`` from ``lower`` to ``upper``, both included."""

    json_layout = JsonForm(tag=("kind", "loop"))

    counter: str
    lower: IntExpr
    upper: IntExpr
    step: int
    body: tuple[HostStep, ...]


@frozen
class HostIf:
    """Steps taken where ``condition`` is not 0."""

    json_layout = JsonForm(tag=("kind", "if"))

    condition: IntExpr
    body: tuple[HostStep, ...]


HostStep: TypeAlias = Launch | HostLoop | HostIf


def every_step(
    steps: Iterable[HostStep], around: tuple[HostLoop, ...] = ()
) -> Iterator[tuple[HostStep, tuple[HostLoop, ...]]]:
    """Yield steps and all that stand in them, in their order, with the loops around them."""
    for step in steps:
        yield step, around
        if not isinstance(step, Launch):
            inner = (*around, step) if isinstance(step, HostLoop) else around
            yield from every_step(step.body, inner)


def with_loop(
    steps: Iterable[HostStep], counter: str, made: Callable[[HostLoop], Iterable[HostStep]]
) -> tuple[HostStep, ...]:
    """Return steps with what is made of the loop of a counter in its place."""
    found: list[HostStep] = []
    for step in steps:
        if isinstance(step, HostLoop) and step.counter == counter:
            found += made(step)
        elif isinstance(step, Launch):
            found.append(step)
        else:
            found.append(replace(step, body=with_loop(step.body, counter, made)))
    return tuple(found)


GRAPH_FROM = 8
"""Runs of fewer launches are not replayed as graphs: it would save less than a call takes."""

MOST_LAUNCHES = 200_000
"""A run of more launches is not captured: that takes seconds, and graphs gigabytes of memory."""

MOST_GRAPHS = 8
"""Graphs kept at a time: sets of arguments that come back, each captured the second time."""


@frozen
class Assumption:
    """What must hold of the parameters; the entry refuses to run otherwise, with ``message``."""

    condition: IntExpr
    message: str


@frozen
class OperationCount:
    """How many operations of a kind on floating-point values a region runs.

    ``kind`` is ``add`` (and subtract), ``multiply``, ``divide``, ``square root``, ``compare``
    (relations, minima, maxima) or ``function`` (any other call). ``count`` is an expression of
    the program's parameters.
    """

    kind: str
    count: IntExpr


@frozen
class Work:
    """What a region has to do at least, exactly, as expressions of the program's parameters.

    ``operations`` are those of the C source, whatever order the generated code runs them in; a
    kind that never runs misses. ``read_bytes`` are the elements whose values from before the
    region are read, each once, ``written_bytes`` the elements written, each once; scalars passed
    by value and arrays local to the region do not count. Where no closed form was found a count
    is ``None``, and one of ``notes`` says why.
    """

    operations: tuple[OperationCount, ...] | None
    read_bytes: IntExpr | None
    written_bytes: IntExpr | None
    notes: Names


@frozen
class Entry:
    """A region of the original: the host function ``launcher`` runs it on device pointers.

    ``launcher`` returns 0, or a ``cudaError_t``. ``function`` is the original's, which does
    nothing but this region where ``whole_function`` holds. ``work`` is ``None`` in plans that
    were written before it was counted.
    """

    launcher: str
    function: str
    region: int
    whole_function: bool
    arguments: tuple[Argument, ...]
    temporaries: tuple[Temporary, ...]
    assumptions: tuple[Assumption, ...]
    body: tuple[HostStep, ...]
    work: Work | None = None


INTEGERS: Parts[IntExpr] = Parts(
    ("IntExpr", "HostStep", "OperationCount"),
    IntExpr,
    (Launch, HostLoop, HostIf, OperationCount),
)
"""Integer expressions of a noun of the plan, and of the steps and counts in it."""


@frozen
class Original:
    """The C the program was made from; ``file`` stands beside the text.

    ``function_arguments`` are the C types of the parameters of each entry's function.
    """

    file: str
    defines: Names
    include_dirs: Names


FAST_MATH: Names = ("-prec-div=false", "-prec-sqrt=false", "-ftz=true")
"""Options with which compilers make operations of floats approximate."""


@frozen
class Program(Shown):
    """CUDA text with its launch plan.

    Attributes:
        name: Name of the program.
        file: Name of the file that the text stands in, ``"gemm.cu"``.
        text: The CUDA; not part of the JSON form.
        original: The C that it was made from.
        gpu: Name of the profile that it was made for.
        compute_capability: What it needs, ``90`` for 9.0.
        dtype: ``"float"``, ``"double"`` or ``"_Float16"``: the widest of its arrays.
        strict_fp: Whether every floating-point operation keeps the original's order.
        index_bits: Bits of its indices.
        flags: Options the CUDA compiler has to get.
        parameters: Sizes that it is generic over.
        kernels: Its ``__global__`` functions.
        entries: Regions of the original, each with its launcher.
        schema_version: Of the JSON form.
        recipe: What was decided about it, as JSON (:mod:`eatss.lower.recipe`), from which the same
            program is made again; ``None`` in plans of before.
        expected: What a run is expected to take on its card, and at which sizes; no part of the
            JSON form, ``None`` where nothing was predicted: what a recipe makes again.
    """

    json_layout = JsonForm(apart=("text", "expected"))
    shown_by = "program"

    name: str
    file: str
    text: str
    original: Original
    gpu: str
    compute_capability: int
    dtype: str
    strict_fp: bool
    index_bits: Literal[32, 64]
    flags: Names
    parameters: tuple[Parameter, ...]
    kernels: tuple[KernelCode, ...]
    entries: tuple[Entry, ...]
    schema_version: int = SCHEMA_VERSION
    recipe: JsonObject | None = field(default=None, hash=False)
    expected: ExpectedRun | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        told = "" if self.expected is None else f"; expected: {self.expected}"
        return in_lines(
            f"Program {self.name}: {self.gpu}, {self.dtype}, {self.index_bits}-bit indices{told}",
            [repr(kernel)[len("<KernelCode ") : -1] for kernel in self.kernels],
        )

    @property
    def fast_math(self) -> bool:
        """Whether divisions and roots of floats are approximate, and their subnormals 0."""
        return {*FAST_MATH} <= {*self.flags}

    def compile(self, *, cache: Any = None) -> Any:
        """Return the program as a function of arrays, as :func:`eatss.jit` does.

            gemm = eatss.codegen("gemm.c", gpu="h200").compile()
            gemm(alpha=1.5, beta=1.2, C=C, A=A, B=B)

        Args:
            cache: Where what is compiled is kept: by default in the user's cache, in an
                ``eatss.base.cache.Cache``, or with ``False`` not at all.

        Returns:
            An :class:`eatss.JitFunction`.
        """
        return resolve_name(_COMPILED)(self, cache=cache)

    @property
    def macros(self) -> tuple[Parameter, ...]:
        """The sizes that macros set when it is compiled."""
        return tuple(one for one in self.parameters if one.kind == "macro")

    def kernel(self, name: str) -> KernelCode:
        """Return the kernel called ``name``; ``KeyError`` if there is none."""
        return called(name, self.kernels)


@frozen
class InterfaceEntry:
    """A region as its callers see it: the C function around it and the arguments, in order."""

    function: str
    arguments: tuple[Argument, ...]


@frozen
class Interface:
    """The sizes of a program, and the arguments of its regions in source order."""

    parameters: tuple[Parameter, ...]
    entries: tuple[InterfaceEntry, ...]
    schema_version: int = 1

    @classmethod
    def of(cls, program: Program) -> Interface:
        """Return that of a program."""
        return cls(
            parameters=program.parameters,
            entries=tuple(
                InterfaceEntry(function=entry.function, arguments=entry.arguments)
                for entry in program.entries
            ),
        )


MUCH_STACK_BYTES = 256
"""A quarter of the registers that a thread can have, 255 of four bytes.

Calls of functions and a few values out of turn take less. More are arrays that should have been
registers: they are slow, and compilers were seen to make wrong code of 3664 bytes.
"""


def stack_warnings(stacks: Iterable[tuple[str, int]], *, of: str = "") -> Diagnostics:
    """Return a warning for each kernel whose threads have much stack.

    Args:
        stacks: kernels with the bytes of a thread, as a compiler or a driver says.
        of: which of several programs they are of.
    """
    program = f" of '{of}'" if of else ""
    return tuple(
        Diagnostic(
            code="EATSS-V047",
            severity=Severity.WARNING,
            message=f"a thread of kernel '{kernel}'{program} has {stack} bytes of stack, "
            f"over {MUCH_STACK_BYTES}: arrays that found no registers, which is slow, and "
            "compilers have made wrong code of it",
            hint="give a thread fewer points: smaller tiles, or more threads for the same tile; "
            "then compare results with those of the original, as 'eatss measure' does",
        )
        for kernel, stack in stacks
        if stack > MUCH_STACK_BYTES
    )


PLAN_FILE = "plan.json"
PROGRAM_SUFFIX = ".eatss"
"""Of folders with a program that stand beside what a compiler of others wrote."""

_MOST_BYTES = 64 * 2**20

PLAN = Document(
    title="launch plan",
    kind=Program,
    other_version="EATSS-V001",
    damaged="EATSS-V002",
    hint="generate the program again with this version of eatss",
)
program_to_dict = PLAN.to_dict


def program_from_dict(document: Mapping[str, Any], text: str) -> Program:
    """Read what :func:`program_to_dict` wrote; the text is not part of it.

    Raises:
        InputError: ``EATSS-V001`` it is of another version, ``EATSS-V002`` it is damaged.
    """
    return PLAN.from_dict(document, text=text)


def save_program(program: Program, directory: Path) -> None:
    """Write text and launch plan into an existing folder."""
    (directory / program.file).write_text(program.text, encoding="utf-8")
    (directory / PLAN_FILE).write_text(PLAN.to_text(program), encoding="utf-8")


def program_folder(directory: Path) -> Path:
    """Return the folder with the program: this one, or the only ``NAME.eatss`` in it.

    Raises:
        InputError: ``EATSS-V003``, there are several.
    """
    try:
        if not directory.is_dir() or (directory / PLAN_FILE).exists():
            return directory
    except OSError:  # who reads it says why it cannot be
        return directory
    found = sorted(plan.parent for plan in directory.glob(f"*{PROGRAM_SUFFIX}/{PLAN_FILE}"))
    if len(found) > 1:
        names = ", ".join(str(folder) for folder in found)
        raise input_error(
            "EATSS-V003", f"'{directory}' holds several programs", hint=f"name one: {names}"
        )
    return found[0] if found else directory


def load_program(directory: Path) -> Program:
    """Read the program in a folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = directory / PLAN_FILE
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        _check_place(document["file"])
        text = read_regular(directory / document["file"], _MOST_BYTES).decode()
    except FileNotFoundError as error:
        raise input_error(
            "EATSS-V003",
            f"'{directory}' holds no generated program: there is no '{error.filename}'",
            hint="make one with: eatss codegen FILE.c --gpu NAME -o DIR, or with eatss ppcg",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = (error.filename if isinstance(error, OSError) else None) or path
        raise input_error(
            "EATSS-V002",
            f"'{place}' cannot be read: {reason}",
            hint="name the folder that 'eatss codegen -o' wrote, or generate the program again",
        ) from None
    program = program_from_dict(document, text)
    try:
        for place in (program.original.file, *program.original.include_dirs):
            _check_place(place)
    except ValueError as error:
        raise PLAN.damage(str(error)) from None
    return program


def _check_place(place: str) -> None:
    """Refuse a file or folder that is not in the folder of the plan."""
    path = PurePosixPath(place)
    if not place or path.is_absolute() or ".." in path.parts or "\0" in place:
        raise ValueError(f"{place!r} is no place in its folder")
