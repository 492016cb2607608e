"""What a kernel does, counted: instances, operations, accesses and how addresses move.

Counts are those of one run of the program at its sizes. The prediction of time and energy starts
from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod

import islpy as isl

from eatss.analysis.sizes import (
    ASSUMED_SIZE,
    extents_of,
    lengths_of,
    parameter_values,
    touched_elements,
)
from eatss.analysis.touched import TouchedBox, Values, touched_box
from eatss.frozen import frozen
from eatss.isl_names import (
    affine_form,
    at_values,
    constant_value,
    coupled_dims,
    dim_names,
    dims_as_parameters,
    integer,
    maps_of,
    only_dim,
    output_affs,
    parameters_as_dims,
    without_parameters,
)
from eatss.polyhedral.kernel import Kernel, Loop, Reference
from eatss.polyhedral.kernels import trip_count
from eatss.program import Constant
from eatss.scops import Array, Binary, ElementType, Expression, Read, Scop, Statement, Unary
from eatss.scops.expression import added_to, factors, product_of, regrouped
from eatss.work.count import count
from eatss.work.operations import Operations, operations_of


@frozen
class AccessFacts:
    """A distinct array reference of one statement, read, written or both.

    ``reference`` is its position in ``KernelFacts.references``. ``strides`` pairs the kernel's
    loops, those below the band included, with the elements that the address moves by when the
    loop makes a step; loops that do not move it are left out. ``subscripts`` has, for each
    dimension of the array, the coefficients of the loops and the constant. ``origin`` is the last
    subscript where all loops have their first values, 0 where that is open. What is read or written
    ``converts`` from or to a type in which nothing is computed: a half. ``touched`` is what it
    touches in one launch, ``None`` where that is not known.
    """

    reference: int
    array: str
    element_bytes: int
    reads: int
    writes: bool
    strides: tuple[tuple[str, int], ...]
    subscripts: tuple[tuple[tuple[tuple[str, int], ...], int], ...]
    affine: bool
    origin: int = 0
    converts: bool = False
    touched: TouchedBox | None = None

    @property
    def moving(self) -> dict[str, int]:
        """How many elements the address moves by with each loop that moves it."""
        return dict(self.strides)

    @property
    def terms(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """The coefficients of the loops for each dimension."""
        return tuple(terms for terms, _ in self.subscripts)


@frozen
class Arithmetic:
    """Operations of an instance, as in :class:`StatementFacts`."""

    operations: tuple[tuple[str, int], ...]
    repeated: tuple[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], ...]
    integer_products: int


@frozen
class StatementFacts:
    """One statement of a kernel.

    ``loops`` are the kernel's loops its instances move along. ``instances`` counts them over all
    launches, ``None`` where they cannot be counted. ``operations`` pairs kinds of
    floating-point operations with how many one instance runs. ``element_bytes`` is the width
    they are in. ``coupled`` are the loops whose values depend on those of others, as in a
    triangle. ``tied`` says that its instances move along more of the kernel's loops than they have
    counters of their own, as on the diagonal of a nest over both subscripts. ``repeated`` are those
    of the operations whose value stays the same along some of ``loops``, by the loops it moves
    along: a compiler that sees several steps of such a loop at a time runs them once. ``in_sum`` is
    the arithmetic that is left where scalar factors of what it adds wait until the sum is there,
    and others are multiplied in another order; ``None`` where that is the same.
    ``integer_products`` are no floating-point operations, and take as long.
    """

    name: str
    loops: tuple[str, ...]
    instances: int | None
    operations: tuple[tuple[str, int], ...]
    element_bytes: int
    accesses: tuple[AccessFacts, ...]
    coupled: tuple[str, ...] = ()
    tied: bool = False
    repeated: tuple[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], ...] = ()
    in_sum: Arithmetic | None = None
    integer_products: int = 0

    def with_factors_last(self) -> StatementFacts:
        """Return the statement with the arithmetic that is left in its sum."""
        if self.in_sum is None:
            return self
        return replace(
            self,
            operations=self.in_sum.operations,
            repeated=self.in_sum.repeated,
            integer_products=self.in_sum.integer_products,
        )

    def fill(self, trips: Mapping[str, float], launches: float) -> float:
        """Return the share of the box of its loops that it runs at, in one of its launches.

        ``trips`` are those of the loops that a launch runs.
        """
        if self.instances is None:
            return 1.0
        box = prod(trips[name] for name in self.loops if name in trips)
        return min(1.0, self.instances / max(1.0, box * launches))


@frozen
class ArrayFacts:
    """An array that a kernel touches: its extents (``None`` where open) and element width.

    ``elements`` are those at the assumed sizes.
    """

    name: str
    element_bytes: int
    extents: tuple[int | None, ...]
    elements: int


@frozen
class KernelWork:
    """The work of a kernel.

    ``launches`` is how often the host loops launch it, ``None`` where it cannot be counted.
    ``trips`` are those of all its loops over all launches. Where the source leaves sizes open, all
    numbers are at those of ``eatss.analysis.sizes``.
    """

    launches: int | None = 1
    statements: tuple[StatementFacts, ...] = ()
    arrays: tuple[ArrayFacts, ...] = ()
    trips: tuple[tuple[str, int], ...] = ()


def kernel_work(
    scop: Scop,
    kernel: Kernel,
    references: tuple[Reference, ...],
    element_type: ElementType | None = None,
) -> KernelWork:
    """Count the work of one kernel.

    Args:
        scop: the region.
        kernel: one of its kernels.
        references: its array references, in the order of ``KernelFacts.references``.
        element_type: overrides the type of every floating-point array.
    """
    used = {reference.array for reference in references}
    sizes = _Sizes(tuple(parameter_values(scop).items()))
    types = {a.name: _type_of(a, element_type) for a in scop.arrays if a.name in used}
    lengths = {a.name: lengths_of(scop, a, sizes.values) for a in scop.arrays if a.name in used}
    arrays = tuple(
        ArrayFacts(
            name=a.name,
            element_bytes=types[a.name].size_bytes,
            extents=extents_of(a, a.extent),
            elements=prod(lengths[a.name]),
        )
        for a in scop.arrays
        if a.name in used
    )
    layouts = {array: _dimension_strides(own) for array, own in lengths.items()}
    schedules = {m.get_tuple_name(isl.dim_type.in_): m for m in maps_of(kernel.schedule)}
    names = [loop.name for loop in kernel.loops + kernel.inner_loops]
    written = frozenset(a.array for s in scop.statements for a in s.accesses if a.is_write)
    known = kernel.launch_domain.intersect_params(scop.context)
    launches = sizes.number(known) if kernel.host_loops else 1
    boxes = tuple(
        _touched(one, kernel, sizes, launches, lengths[one.array][-1], types[one.array].size_bytes)
        for one in references
    )
    statements, domains = [], {}
    for name in kernel.statements:
        statement = scop.statement(name)
        domains[name] = schedules[name].intersect_domain(statement.domain).range()
        moving = _moving(schedules[name], names)
        firsts = _firsts(schedules[name], statement, names, sizes)
        accesses = _accesses(statement, references, types, layouts, moving, firsts)
        accesses = tuple(replace(one, touched=boxes[one.reference]) for one in accesses)
        along = _moving_along(statement, references, moving, written)
        own = _arithmetic(scop, statement, along, moving)
        fewer = _in_sum(scop, kernel, statement, along, written)
        statements.append(
            StatementFacts(
                name=name,
                loops=moving,
                instances=sizes.number(statement.domain.intersect_params(scop.context)),
                operations=own.operations,
                repeated=own.repeated,
                integer_products=own.integer_products,
                in_sum=None if fewer is None else _arithmetic(scop, fewer, along, moving),
                element_bytes=max((a.element_bytes for a in accesses), default=4),
                accesses=accesses,
                coupled=_coupled(schedules[name], statement, names),
                tied=len(moving) > len(statement.loops) - _host_counters(kernel, statement),
            )
        )
    trips = []
    for loop in kernel.loops + kernel.inner_loops:
        around = [domains[one.name] for one in statements if loop.name in one.loops]
        trips.append((loop.name, _trips(loop, around or list(domains.values()), sizes)))
    return KernelWork(
        launches=launches,
        statements=tuple(statements),
        arrays=arrays,
        trips=tuple(trips),
    )


def instances_of(scop: Scop, statements: Sequence[str]) -> int | None:
    """Count the instances of statements of a region, ``None`` where they cannot be counted."""
    sizes = _Sizes(tuple(parameter_values(scop).items()))
    domains = [scop.statement(name).domain for name in statements]
    found = [sizes.number(domain.intersect_params(scop.context)) for domain in domains]
    return None if None in found else sum(one for one in found if one is not None)


def bytes_of(scop: Scop, statements: Sequence[str]) -> dict[str, int]:
    """Return the bytes of arrays that statements of a region touch, as far as they are counted."""
    sizes = _Sizes(tuple(parameter_values(scop).items()))
    found = {}
    for array in scop.arrays:
        touched = touched_elements(scop, array.name, statements) if array.n_dims else []
        if touched:
            number = sizes.number(reduce(isl.Set.union, touched))
            found[array.name] = (number or 0) * array.element_type.size_bytes
    return found


def _arithmetic(
    scop: Scop, statement: Statement, along: list[frozenset[str]], moving: tuple[str, ...]
) -> Arithmetic:
    types = {array.name: array.element_type for array in scop.arrays}
    operations = operations_of(statement, types, along)
    return Arithmetic(
        operations=tuple(operations.counts.items()),
        repeated=_repeated(operations, moving),
        integer_products=operations.integer_products,
    )


def _in_sum(
    scop: Scop,
    kernel: Kernel,
    statement: Statement,
    along: list[frozenset[str]],
    written: frozenset[str],
) -> Statement | None:
    """Return a statement as generated code has it in a sum, ``None`` if it is as it was.

    Scalars that what it adds is multiplied by are left out, and factors that move along the same
    parallel loops are multiplied with each other first.
    """

    def is_target(value: Expression) -> bool:
        return isinstance(value, Read) and statement.accesses[value.access].text == target.text

    def is_scalar(value: Expression) -> bool:
        if isinstance(value, Unary) and value.operator == "-":
            return is_scalar(value.operand)
        if not isinstance(value, Read):
            return False
        array = statement.accesses[value.access].array
        return array not in written and scop.array(array).n_dims == 0

    def moves(value: Expression) -> frozenset[str]:
        return along[value.access] & parallel if isinstance(value, Read) else parallel

    parallel = frozenset(loop.name for loop in kernel.parallel_loops)
    target = statement.write
    added = added_to(
        statement.value,
        is_target,
        lambda access: scop.array(statement.accesses[access].array).element_type,
    )
    every = [] if added is None else list(factors(added))
    left = [one for one in every if not is_scalar(one)]
    if added is None or not left:
        return None
    product = regrouped(left, moves) if all(isinstance(one, Read) for one in left) else None
    product = product or product_of(left)
    if product == added:
        return None
    read = next(n for n, one in enumerate(statement.accesses) if n and one.text == target.text)
    value = Binary(operator="+", left=Read(access=read), right=product)
    return replace(statement, value=value)


def overlapping(references: tuple[Reference, ...]) -> frozenset[frozenset[int]]:
    """Return the pairs of references to a written array that share elements in one launch.

    Those that all share some element are a group, and need no comparison with each other.
    """
    written = {reference.array for reference in references if reference.writes}
    touched = {
        position: reference.relation.range()
        for position, reference in enumerate(references)
        if reference.array in written
    }
    groups: list[tuple[isl.Set, list[int]]] = []
    found = set()
    for position, elements in touched.items():
        home: int | None = None
        for at, (common, others) in enumerate(groups):
            if common.get_tuple_name() != elements.get_tuple_name():
                continue
            all_meet = not common.is_disjoint(elements)
            home = at if home is None and all_meet else home
            found |= {
                frozenset((one, position))
                for one in others
                if all_meet or not touched[one].is_disjoint(elements)
            }
        if home is None:
            groups.append((elements, [position]))
        else:
            common, others = groups[home]
            groups[home] = common.intersect(elements), [*others, position]
    return frozenset(found)


def _coupled(schedule: isl.Map, statement: Statement, names: list[str]) -> tuple[str, ...]:
    """Return the loops that bounds tie to others; host loops stand at any of their values."""
    points = schedule.intersect_domain(statement.domain).range()
    return tuple(names[at] for at in coupled_dims(points))


def _firsts(
    schedule: isl.Map, statement: Statement, names: list[str], sizes: _Sizes
) -> dict[str, int]:
    """Return the least value of each loop that has one, whatever the host loops are at."""
    points = sizes.at(schedule.intersect_domain(statement.domain).range())
    found = {}
    for position, name in enumerate(names):
        if points.dim_has_lower_bound(isl.dim_type.set, position):
            least = constant_value(points.dim_min(position))
            if least is not None:
                found[name] = least
    return found


def _origin(reference: Reference, firsts: dict[str, int]) -> int:
    if not reference.subscripts:
        return 0
    last = reference.subscripts[-1]
    return last.offset + sum(c * firsts.get(loop, 0) for loop, c in last.coefficients)


def _host_counters(kernel: Kernel, statement: Statement) -> int:
    return min(len(kernel.host_loops), len(statement.loops))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Values of all parameters of a region: those that are given, and those that are assumed."""

    values: tuple[tuple[str, int], ...]

    def at(self, points: isl.Set) -> isl.Set:
        """Return a set at these sizes."""
        return at_values(points, self.values)

    def number(self, points: isl.Set) -> int | None:
        """Return how many points a set has at these sizes."""
        found = count(self.at(points))
        return found.value if isinstance(found, Constant) else None


def _trips(loop: Loop, moving: Sequence[isl.Set], sizes: _Sizes) -> int:
    """Return the trips of a loop over all launches, of domains of statements that move along it."""
    if loop.trip_count is not None:
        return max(1, loop.trip_count)
    points = [sizes.at(domain).project_out_all_params() for domain in moving]
    known = isl.Set.universe(points[0].get_space().params())
    found = trip_count(points, loop.name, known)
    return ASSUMED_SIZE if found is None else max(1, found)


def _type_of(array: Array, element_type: ElementType | None) -> ElementType:
    """Return the type of an array's elements, that of floating-point numbers overridden."""
    found = array.element_type
    return found if element_type is None or not found.is_floating else element_type


def _dimension_strides(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return how many elements apart neighbours along each dimension lie."""
    return tuple(prod(lengths[position + 1 :]) for position in range(len(lengths)))


def _moving(schedule: isl.Map, names: list[str]) -> tuple[str, ...]:
    moving = []
    for name, function in zip(names, output_affs(schedule), strict=True):
        form = affine_form(function)
        if form is None or form.coefficients:
            moving.append(name)
    return tuple(moving)


def _moving_along(
    statement: Statement,
    references: tuple[Reference, ...],
    moving: tuple[str, ...],
    written: frozenset[str],
) -> list[frozenset[str]]:
    """Return the loops that the value of each access may change along.

    What the region writes may change along all of them; a scalar that it only reads never does.
    """
    found = []
    for access in statement.accesses:
        position = reference_of(access.array, access.text, statement.name, references)
        if access.array in written:
            found.append(frozenset(moving))
        elif position is None:
            found.append(frozenset())
        else:
            used = {n for s in references[position].subscripts for n, c in s.coefficients if c}
            exact = all(s.affine for s in references[position].subscripts)
            found.append(frozenset(moving) & used if exact else frozenset(moving))
    return found


def _repeated(
    operations: Operations, moving: tuple[str, ...]
) -> tuple[tuple[tuple[str, ...], tuple[tuple[str, int], ...]], ...]:
    """Return the operations whose value stays the same along some loops, by the loops it has."""
    found: dict[tuple[str, ...], list[tuple[str, int]]] = {}
    for (kind, loops), often in operations.along.items():
        own = tuple(name for name in moving if name in loops)
        if own != moving:
            found.setdefault(own, []).append((kind, often))
    return tuple((own, tuple(kinds)) for own, kinds in found.items())


def _accesses(
    statement: Statement,
    references: tuple[Reference, ...],
    types: dict[str, ElementType],
    layouts: dict[str, tuple[int, ...]],
    moving: tuple[str, ...],
    firsts: dict[str, int],
) -> tuple[AccessFacts, ...]:
    reads: dict[int, int] = {}
    writes: dict[int, bool] = {}
    for access in statement.accesses:
        position = reference_of(access.array, access.text, statement.name, references)
        if position is None:
            continue  # a scalar
        reads[position] = reads.get(position, 0) + (not access.is_write)
        writes[position] = writes.get(position, False) or access.is_write
    found = []
    for position, count_of_reads in reads.items():
        reference = references[position]
        steps: dict[str, int] = {}
        for subscript, apart in zip(reference.subscripts, layouts[reference.array], strict=True):
            for loop, factor in subscript.coefficients:
                if loop in moving:
                    steps[loop] = steps.get(loop, 0) + factor * apart
        found.append(
            AccessFacts(
                reference=position,
                array=reference.array,
                element_bytes=types[reference.array].size_bytes,
                reads=count_of_reads,
                writes=writes[position],
                strides=tuple((loop, step) for loop, step in steps.items() if step),
                subscripts=tuple(
                    (tuple((n, c) for n, c in s.coefficients if n in moving), s.offset)
                    for s in reference.subscripts
                ),
                affine=all(s.affine for s in reference.subscripts),
                origin=_origin(reference, firsts),
                converts=types[reference.array] is ElementType.HALF,
            )
        )
    return tuple(found)


def _touched(
    reference: Reference,
    kernel: Kernel,
    sizes: _Sizes,
    launches: int | None,
    row_elements: int,
    element_bytes: int,
) -> TouchedBox | None:
    """Return what a reference touches in one launch, ``None`` where that is not known."""
    if not launches or not all(one.affine for one in reference.subscripts):
        return None
    domain = sizes.at(reference.relation.domain())
    every = domain.project_out_all_params()
    names = dim_names(domain)
    loops = [name for one in reference.subscripts for name in one.loops]
    values = {name: _values(every, name) for name in dict.fromkeys(loops)}
    known = {name: own for name, own in values.items() if own is not None}
    others = [name for name in names if name not in values]
    points = without_parameters(dims_as_parameters(domain, names), others)
    touched = count(parameters_as_dims(points, (*kernel.host_loops, *values), "touched"))
    if len(known) < len(values) or not isinstance(touched, Constant):
        return None
    subscripts = [(one.coefficients, one.offset) for one in reference.subscripts]
    from_launch_to_launch = tuple(one.symbols for one in reference.subscripts)
    box = touched_box(subscripts, known, row_elements, element_bytes, from_launch_to_launch)
    whole = prod(trips for _, _, trips in known.values())
    if len(values) < len(loops):  # one loop moves along several dimensions
        whole = prod(end - start for start, end in box.intervals)
    return replace(box, fill=min(1.0, touched.value / (launches * whole)))


def _values(points: isl.Set, name: str) -> Values | None:
    """Return the values that a loop takes, ``None`` where it has no end."""
    line = only_dim(points, name)
    ends = line.dim_min_val(0), line.dim_max_val(0)
    if not all(end.is_int() for end in ends):
        return None
    first, last = map(integer, ends)
    step = max(1, integer(line.get_stride(0)))
    return first, step, (last - first) // step + 1


def reference_of(
    array: str, text: str, statement: str, references: tuple[Reference, ...]
) -> int | None:
    """Return which reference an access is: the one of its text, else the first of its array."""
    mine = [
        (position, reference)
        for position, reference in enumerate(references)
        if reference.array == array and statement in reference.statements
    ]
    for position, reference in mine:
        if reference.text == text:
            return position
    return mine[0][0] if mine else None
