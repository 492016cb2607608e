"""A region of affine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields, replace
from enum import Enum
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from eatss.base.diagnostics import SourceSpan
from eatss.base.frozen import Names, called, complete, frozen, frozen_part, their_names
from eatss.base.memo import Memo
from eatss.polyhedral.expression import Array, ElementType, Expression
from eatss.program.expression import OwnSizes, SizePairs, Sizes

if TYPE_CHECKING:
    import islpy as isl


ParameterOrigin: TypeAlias = Literal["parameter", "global", "static", "local", "macro"]
"""As :data:`~eatss.polyhedral.expression.Origin`; ``macro`` is a size that ``-D`` may set."""


@frozen
class FunctionParameter:
    """A parameter of the function a region stands in.

    ``c_type`` is its type in C, macros and typedefs expanded (``double[4000][4000]``,
    ``const float *``, ``int``). ``is_pointer`` holds for arrays and pointers, not for scalars
    passed by value. ``position`` counts from 0. ``element_type`` is the arithmetic type of the
    value or of the elements, ``None`` for what regions cannot use (structures, ``void *``).
    """

    name: str
    c_type: str
    is_pointer: bool
    position: int
    element_type: ElementType | None = None


@frozen
class ParameterDeclaration:
    """An integer parameter of a region: its name there, its name in C, type and origin."""

    name: str
    source_name: str
    element_type: ElementType
    origin: ParameterOrigin


Place: TypeAlias = tuple[str, int]
"""An access: the name of its statement, and its number there."""


class AccessKind(Enum):
    """Whether an access reads or writes."""

    READ = "read"
    WRITE = "write"


@frozen
class Access:
    """One reference of a statement, in one direction.

    ``relation`` maps the statement's domain to array elements, restricted to the
    domain; it is single-valued. ``A[i] += x`` gives a read and a write of ``A``
    that share the same ``text`` and ``span``.
    """

    array: str
    kind: AccessKind
    relation: isl.Map
    text: str
    span: SourceSpan

    @property
    def is_write(self) -> bool:
        """Whether the access writes."""
        return self.kind is AccessKind.WRITE


MOST_ORDER = 3
"""Steps before, in which what a step of a recurrence in chunks needs was written: a chunk comes to
as many values as the square of it."""


@frozen
class Statement:
    """An assignment inside the region, run once for each point of its domain.

    ``domain`` lives in the space ``name[loops…]``, dimensions named as the
    counters, outermost first; its points are the counters' own values (no
    normalisation). ``schedule`` maps the domain to the time of the original
    program, a vector ``[c0, l1, c1, l2, c2, …]`` of textual positions and
    (negated, for loops that count down) counters, equally long for all
    statements of the scop.

    ``accesses[0]`` is the write; reads follow in the order of the source.
    ``value`` is the value stored: for ``A[i] += e`` the tree ``A[i] + e``.
    ``text`` is the source text in one line, macros not expanded. ``ppcg_name`` is what PPCG calls
    it (empty: the region was not read from C). ``written_in`` is the name of the file of ``span``
    where that is not the C.
    ``recomputed`` are the reads of the source whose values the statement computes anew instead.
    ``piece_of`` is the statement of the source that it runs some instances of. ``chunk`` is how
    many steps of a recurrence are a chunk of it (0: it is of none). ``one_pass`` are
    arrays whose sums are added up by parts in one pass, and one of which it writes, or a part of.
    ``reordered`` says that it adds up a sum from its end, or with factors taken out. One that is
    ``combined`` is an update of which points of parallel loops each have a part; these become one
    in any order.
    """

    name: str
    loops: Names
    domain: isl.Set
    schedule: isl.Map
    accesses: tuple[Access, ...]
    value: Expression
    text: str
    span: SourceSpan
    ppcg_name: str = ""
    written_in: str = ""
    recomputed: tuple[Access, ...] = ()
    piece_of: str = ""
    chunk: int = 0
    one_pass: Names = ()
    reordered: bool = False
    combined: bool = False

    @property
    def write(self) -> Access:
        """The one write of the statement."""
        return self.accesses[0]

    @property
    def reads(self) -> tuple[Access, ...]:
        """The reads of the statement in the order of the source."""
        return self.accesses[1:]

    @property
    def reorders(self) -> bool:
        """Whether it adds up in another order than the source."""
        return bool(self.chunk or self.one_pass or self.reordered or self.combined)

    def uses(self, array: str) -> bool:
        """Tell whether the statement reads or writes elements of an array."""
        return any(access.array == array for access in self.accesses)

    def reads_from(self, array: str) -> bool:
        """Tell whether the statement reads elements of an array."""
        return any(read.array == array for read in self.reads)


@frozen_part
class Dependences:
    """Memory-based and value-based dependences between statement instances.

    ``flow`` is value-based (isl dataflow): from the last write of an element to each
    read of it. ``anti`` runs from reads to the next write, ``output`` from writes
    to the next write of the same element. ``order`` are the order dependences
    between live ranges; they and ``tagged_flow`` carry access ids on both ends and serve
    as conditional validity and its condition. ``forced`` keeps reads of live-in
    values before any write, and writes of live-out values after any other. They are those for some
    ``sizes``, for all where that is ``None``.
    """

    flow: isl.UnionMap
    anti: isl.UnionMap
    output: isl.UnionMap
    forced: isl.UnionMap
    tagged_flow: isl.UnionMap
    order: isl.UnionMap
    sizes: isl.Set | None = None

    @cached_property
    def once(self) -> Memo:
        """What was made of them."""
        return Memo()

    @cached_property
    def memory_based(self) -> isl.UnionMap:
        """All between instances that use one element, whatever becomes of values."""
        return self.flow.union(self.anti).union(self.output)

    @cached_property
    def needed(self) -> isl.UnionMap:
        """What any order has to respect that keeps live ranges as they are."""
        return self.memory_based.union(self.forced)

    @property
    def validity(self) -> isl.UnionMap:
        """What holds always."""
        return self.flow.union(self.forced)

    def within(self, context: isl.Set) -> Dependences:
        """Return the dependences there are for some sizes: a set of parameters."""
        here = self.each(lambda relation: relation.intersect_params(context))
        return replace(here, sizes=context)

    def each(self, change: Callable[[isl.UnionMap], isl.UnionMap]) -> Dependences:
        """Return them with a change made of each relation."""
        names = [one.name for one in fields(self) if one.name != "sizes"]
        changed: dict[str, Any] = {name: change(getattr(self, name)) for name in names}
        return replace(self, **changed)


@frozen
class SizeProduct:
    """A parameter that is a product of others and of numbers: ``NA_NB = NA * NB``.

    Negative factors count as 0: loops over them do not run.
    """

    name: str
    factors: tuple[int | str, ...]

    def value(self, sizes: Sizes) -> int | None:
        """Return its value, ``None`` where that of a factor is not known."""
        known = complete(sizes.get(one) if isinstance(one, str) else one for one in self.factors)
        return None if known is None else prod(max(0, value) for value in known)


@frozen
class SizeCondition:
    """Sizes for which a region is what was read, and what is the case for others."""

    sizes: isl.Set
    message: str


@frozen
class Scop:
    """One ``#pragma scop`` region: all that later passes know of the C program.

    All isl objects live in one ``isl.Context``, ``isl_context``, made for this run,
    so that runs in different threads share nothing. ``context`` is what is known
    about the parameters. Statements stand in source order. ``index`` counts the
    regions of the file from 0. ``size_macros`` are the macros that spell numbers in the
    bounds of the loops, with their values: bounds spelled alike are one size.

    ``function_parameters`` are those of the C function. ``whole_function`` says that the function
    does nothing that can be observed but this region. ``parameter_declarations`` tells what
    each of ``parameters`` is in C. ``ppcg_counters`` are counters whose last values PPCG takes for
    results of the region, because the function names them again after it. ``ppcg_steps`` are the
    statements by which PPCG has counters set, each with its name and how many loops are around it.
    ``ppcg_wholes`` is the text of conditions that PPCG takes for one statement, with all that is
    below them.
    ``products`` are those of ``parameters`` that callers do not pass: products of others.
    ``written`` is the region of the source where statements compute anew what they read there
    (``None``: this is it). ``conditions`` are part of ``context``: what runs the region's code has
    to check them. Loops are in blocks of ``class_size`` steps where that is not 0; the order of the
    statements is to be kept then, and their ``dependences`` are known. ``once`` has what was found
    of it.
    """

    file: str
    function: str
    index: int
    parameters: Names
    context: isl.Set
    arrays: tuple[Array, ...]
    statements: tuple[Statement, ...]
    span: SourceSpan
    size_macros: SizePairs = ()
    function_parameters: tuple[FunctionParameter, ...] = ()
    whole_function: bool = False
    parameter_declarations: tuple[ParameterDeclaration, ...] = ()
    ppcg_counters: Names = ()
    ppcg_steps: SizePairs = ()
    ppcg_wholes: Names = ()
    products: tuple[SizeProduct, ...] = ()
    written: Scop | None = None
    conditions: tuple[SizeCondition, ...] = ()
    class_size: int = 0
    dependences: Dependences | None = None
    once: Memo = field(default_factory=Memo, init=False, compare=False, repr=False)

    @property
    def isl_context(self) -> isl.Context:
        """The isl context all sets and maps of this scop live in."""
        return self.context.get_ctx()

    @property
    def sizes(self) -> Names:
        """The parameters that callers give a value, directly or as a macro."""
        products = {one.name for one in self.products}
        return tuple(name for name in self.parameters if name not in products)

    @property
    def names(self) -> set[str]:
        """The names that something of the region has, loops apart."""
        named: tuple[Array | Statement | FunctionParameter, ...] = (
            *self.arrays, *self.statements, *self.function_parameters,
        )  # fmt: skip
        return {*self.parameters, *their_names(named)}

    @property
    def used_arrays(self) -> set[str]:
        """The arrays of which statements read or write elements."""
        return {access.array for statement in self.statements for access in statement.accesses}

    def with_products(self, sizes: Sizes) -> OwnSizes:
        """Return the values of sizes, and those of the products of known ones."""
        products = {one.name: one.value(sizes) for one in self.products}
        return {**sizes, **{name: value for name, value in products.items() if value is not None}}

    def array(self, name: str) -> Array:
        """Return the array called ``name``; ``KeyError`` if there is none."""
        return called(name, self.arrays)

    def statement(self, name: str) -> Statement:
        """Return the statement called ``name``; ``KeyError`` if there is none."""
        return called(name, self.statements)

    def access(self, place: Place) -> Access:
        """Return the access at a place."""
        statement, number = place
        return self.statement(statement).accesses[number]

    @property
    def types(self) -> dict[str, ElementType]:
        """The element types of arrays by name."""
        return {array.name: array.element_type for array in self.arrays}

    @property
    def written_arrays(self) -> frozenset[str]:
        """The arrays that statements write."""
        return frozenset(statement.write.array for statement in self.statements)

    def is_dead_after(self, array: Array) -> bool:
        """Tell whether nothing outside the region sees the values that an array has after it."""
        unseen = self.whole_function or (array.ppcg_kills and not array.n_dims)
        return array.is_local or (array.origin == "local" and unseen)

    @property
    def domain(self) -> isl.UnionSet:
        """The union of all statement domains."""
        union = self.no_points
        for statement in self.statements:
            union = union.union(statement.domain)
        return union

    @property
    def schedule(self) -> isl.UnionMap:
        """The original order of execution, all statements together."""
        union = self.no_relation
        for statement in self.statements:
            union = union.union(statement.schedule)
        return union

    @property
    def no_points(self) -> isl.UnionSet:
        """A union of no sets, with the parameters of the region."""
        import islpy as isl  # noqa: PLC0415 - the nouns do without

        return isl.UnionSet.empty(self.context.get_space())

    @property
    def no_relation(self) -> isl.UnionMap:
        """A union of no relations, with the parameters of the region."""
        import islpy as isl  # noqa: PLC0415 - the nouns do without

        return isl.UnionMap.empty(self.context.get_space())
