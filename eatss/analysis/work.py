"""What a kernel does, counted: instances, operations, accesses and how addresses move.

Counts are those of one run of the program at its sizes. The prediction of time and energy starts
from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from math import prod

import islpy as isl

from eatss.analysis.count import count
from eatss.analysis.facts import (
    AccessFacts,
    Arithmetic,
    ArrayFacts,
    KernelWork,
    StatementFacts,
    TouchedBox,
    Values,
    touched_box,
)
from eatss.analysis.operations import operations_of
from eatss.base.frozen import Names, Numbers, complete, their_names
from eatss.base.shown import ProgramSize
from eatss.polyhedral.expression import (
    Array,
    Binary,
    ElementType,
    Expression,
    Read,
    Unary,
    added_to,
    factors,
    is_in_doubles,
    product_of,
    read_always,
    regrouped,
)
from eatss.polyhedral.isl_names import (
    IN,
    OUT,
    SET,
    affine_form,
    at_values,
    constant_value,
    coupled_dims,
    dim_names,
    dims_as_parameters,
    extremes,
    integer,
    maps_of,
    only_dim,
    output_affs,
    parameters_as_dims,
    without_parameters,
)
from eatss.polyhedral.kernel import Kernel, Loop, Reference
from eatss.polyhedral.kernels import trip_count
from eatss.polyhedral.scop import Access, Scop, Statement
from eatss.program import Constant
from eatss.program.expression import OwnSizes, SizePairs, Sizes

# -- sizes --------------------------------------------------------------------------------------
# The sizes that a prediction is for: what the source and the user say, and what is assumed.

ASSUMED_SIZE = 4096
"""Stands for a size that the source leaves open, as far as what is known of it allows."""

MOST_BYTES = 32 * 2**30
"""Bytes of all arrays of a region at sizes that are assumed: they fit most cards."""

MOST_INDEX = 2**31 - 1
"""What indices of 32 bits count."""


def sizes_of(scops: Iterable[Scop]) -> tuple[ProgramSize, ...]:
    """Return the sizes that predictions of some regions are for, by name.

    A size that is open may count as another number in another region.
    """
    found: dict[ProgramSize, None] = {}
    for scop in scops:
        found |= {ProgramSize(name=name, value=value): None for name, value in scop.size_macros}
        found |= dict.fromkeys(_parameters(scop))
    return tuple(found)


def bytes_of_arrays(scop: Scop, values: Sizes) -> OwnSizes:
    """Return the bytes of each array of a region at some sizes."""
    known = tuple(values.items())
    return {
        array.name: prod(lengths_of(scop, array, known)) * array.element_type.size_bytes
        for array in scop.arrays
        if array.n_dims
    }


def lengths_of(scop: Scop, array: Array, values: SizePairs) -> Numbers:
    """Return how long each dimension of an array is at some sizes.

    Where the source does not say it (``double *x``), it is what the region touches.
    """
    lengths = extents_of(array, at_values(array.extent, values))
    if (known := complete(lengths)) is not None:
        return tuple(max(1, one) for one in known)
    touched = [
        extents_of(array, at_values(elements, values))
        for elements in touched_elements(scop, array.name)
    ]
    found = []
    for position, length in enumerate(lengths):
        ends = complete([one[position] for one in touched] if length is None else [length])
        found.append(max(1, *ends) if ends else ASSUMED_SIZE)
    return tuple(found)


def touched_elements(
    scop: Scop, array: str, statements: Iterable[str] | None = None
) -> list[isl.Set]:
    """Return what each access of a region, or of some of its statements, touches of an array."""
    named = None if statements is None else {*statements}
    return [
        access.relation.intersect_domain(statement.domain).range().intersect_params(scop.context)
        for statement in scop.statements
        if named is None or statement.name in named
        for access in statement.accesses
        if access.array == array
    ]


def extents_of(array: Array, elements: isl.Set) -> tuple[int | None, ...]:
    """Return the end of some elements of an array in each dimension, ``None`` where it is open."""
    extents = []
    for position in range(array.n_dims):
        bounded = elements.dim_has_upper_bound(SET, position)
        last = constant_value(elements.dim_max(position)) if bounded else None
        extents.append(None if last is None else last + 1)
    return tuple(extents)


def parameter_values(scop: Scop) -> OwnSizes:
    """Return the values of all parameters of a region, products of others included."""
    return scop.with_products({one.name: one.value for one in _parameters(scop)})


def leaving_accesses(scop: Scop) -> Iterator[tuple[Access, isl.Set]]:
    """Yield the accesses that leave their arrays for some sizes, with these sizes."""
    for statement in scop.statements:
        for access in statement.accesses:
            outside = access.relation.subtract_range(scop.array(access.array).extent)
            if not outside.is_empty():
                yield access, outside.domain().params()


def _parameters(scop: Scop) -> tuple[ProgramSize, ...]:
    """Return the parameters of a region that have a value, then the others with an assumed one.

    What is assumed is what launchers take: no access leaves its array, and arrays have as many
    elements as indices of 32 bits count. Sizes that make more of these, or arrays too large for a
    card, are halved until they fit.
    """
    if not scop.sizes:
        return ()
    known, most = scop.context, dict.fromkeys(scop.sizes, ASSUMED_SIZE)
    found = _at_most(scop, known, most)
    if not any(one.assumed for one in found):
        return found
    if leaving := [sizes for _, sizes in leaving_accesses(scop)]:
        wanted = [sizes.complement() for sizes in leaving]
        wanted += [statement.domain.params() for statement in scop.statements]  # something runs
        for sizes in wanted:
            within = known.intersect(sizes)
            known = known if within.is_empty() else within
    while True:
        found = _at_most(scop, known, most)
        here = _too_much(scop, found)
        if not any(here):
            return found
        smaller = {}
        for one in found:
            half = {**most, one.name: one.value // 2}
            fewer = one.assumed and most[one.name] > 1
            if fewer and _too_much(scop, _at_most(scop, known, half)) < here:
                smaller[one.name] = one.value // 2
        if not smaller:
            return found
        most |= smaller


def _too_much(scop: Scop, sizes: Iterable[ProgramSize]) -> tuple[int, int]:
    """Return how many elements of arrays indices do not count, and what a card has no room for."""
    taken = bytes_of_arrays(scop, scop.with_products({one.name: one.value for one in sizes}))
    beyond = [
        taken[one.name] // one.element_type.size_bytes - MOST_INDEX
        for one in scop.arrays
        if one.name in taken
    ]
    return sum(max(0, one) for one in beyond), max(0, sum(taken.values()) - MOST_BYTES)


def _at_most(scop: Scop, known: isl.Set, limits: Sizes) -> tuple[ProgramSize, ...]:
    """Return the same, where what is assumed is no more than a limit if it can be."""
    ends = {name: extremes(_line(known, name)) for name in scop.sizes}
    given = {name: own[0] for name, own in ends.items() if own and own[0] == own[1]}
    known = at_values(known, tuple(given.items()))
    assumed = []
    for name in scop.sizes:
        if name not in given:
            value = _largest(known, name, limits[name])
            assumed.append(ProgramSize(name=name, value=value, assumed=True))
            with_it = at_values(known, [(name, value)])
            known = known if with_it.is_empty() else with_it
    return (*(ProgramSize(name=name, value=value) for name, value in given.items()), *assumed)


def _largest(known: isl.Set, name: str, limit: int) -> int:
    """Return the largest value of a parameter up to a limit, the least one if all are beyond it."""
    line = _line(known, name)
    upto = line.upper_bound_val(SET, 0, limit)
    best = line.dim_min_val(0) if upto.is_empty() else upto.dim_max_val(0)
    return integer(best) if best.is_int() else limit


def _line(known: isl.Set, name: str) -> isl.Set:
    """Return the values of a parameter."""
    return parameters_as_dims(known, (name,), "size").project_out_all_params()


# -- counting -----------------------------------------------------------------------------------


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
    counter = _Counter(scop, kernel, references, element_type)
    counted = [_StatementCounter(counter, name) for name in kernel.statements]
    facts = [one.facts() for one in counted]
    trips, spans = [], []
    for loop in kernel.loops + kernel.inner_loops:
        every = [one.points for one in counted]
        domains = [one.points for one in counted if loop.name in one.moving] or every
        trips.append((loop.name, counter.trips(loop, domains)))
        if len(domains) < len(every) and (span := counter.values(loop, every)) > trips[-1][1]:
            spans.append((loop.name, span))
    return KernelWork(
        launches=counter.launches,
        statements=tuple(facts),
        arrays=counter.arrays,
        trips=tuple(trips),
        spans=tuple(spans),
    )


def instances_of(scop: Scop, statements: Sequence[str]) -> int | None:
    """Count the instances of statements of a region, ``None`` where they cannot be counted."""
    sizes = _Sizes(scop)
    domains = [scop.statement(name).domain for name in statements]
    found = complete(sizes.number(domain.intersect_params(scop.context)) for domain in domains)
    return None if found is None else sum(found)


def bytes_of(scop: Scop, statements: Sequence[str]) -> OwnSizes:
    """Return the bytes of arrays that statements of a region touch, as far as they are counted."""
    sizes, found = _Sizes(scop), {}
    for array in scop.arrays:
        touched = touched_elements(scop, array.name, statements) if array.n_dims else []
        if touched:
            number = sizes.number(reduce(isl.Set.union, touched))
            found[array.name] = (number or 0) * array.element_type.size_bytes
    return found


def overlapping(references: tuple[Reference, ...]) -> frozenset[frozenset[int]]:
    """Return the pairs of references to a written array that share elements in one launch."""
    written = {reference.array for reference in references if reference.writes}
    touched = [
        isl.Map.from_range(one.relation.range()).set_tuple_name(IN, f"r{at}").to_union_map()
        for at, one in enumerate(references)
        if one.array in written
    ]
    if not touched:
        return frozenset()
    union = reduce(isl.UnionMap.union, touched)
    pairs = maps_of(union.apply_range(union.reverse()))
    shared = (pair for pair in pairs if not pair.is_empty())
    found = (frozenset(int(one.get_tuple_name(kind)[1:]) for kind in (IN, OUT)) for one in shared)
    return frozenset(pair for pair in found if len(pair) > 1)


class _Sizes:
    """Values of all parameters of a region: those that are given, and those that are assumed."""

    def __init__(self, scop: Scop) -> None:
        self.values = tuple(parameter_values(scop).items())

    def at(self, points: isl.Set) -> isl.Set:
        """Return a set at these sizes."""
        return at_values(points, self.values)

    def number(self, points: isl.Set) -> int | None:
        """Return how many points a set has at these sizes."""
        found = count(self.at(points))
        return found.value if isinstance(found, Constant) else None


class _Counter:
    """What holds for all statements of a kernel.

    ``layouts`` says how many elements apart neighbours along each dimension of an array lie,
    ``boxes`` what each reference touches in one launch; ``written`` is what the kernel writes.
    """

    def __init__(
        self,
        scop: Scop,
        kernel: Kernel,
        references: tuple[Reference, ...],
        element_type: ElementType | None,
    ) -> None:
        self.scop, self.kernel, self.references = scop, kernel, references
        self.sizes = sizes = _Sizes(scop)
        used = {reference.array for reference in references}
        arrays = [array for array in scop.arrays if array.name in used]
        self.types = {
            one.name: element_type
            if element_type is not None and one.element_type.is_floating
            else one.element_type
            for one in arrays
        }
        lengths = {one.name: lengths_of(scop, one, sizes.values) for one in arrays}
        self.arrays = tuple(
            ArrayFacts(
                name=one.name,
                element_bytes=self.types[one.name].size_bytes,
                extents=extents_of(one, one.extent),
                elements=prod(lengths[one.name]),
            )
            for one in arrays
        )
        self.layouts = {
            name: tuple(prod(own[at + 1 :]) for at in range(len(own)))
            for name, own in lengths.items()
        }
        self.schedules = {m.get_tuple_name(IN): m for m in maps_of(kernel.schedule)}
        self.names = their_names(kernel.loops + kernel.inner_loops)
        own = map(scop.statement, kernel.statements)
        self.written = {one.array for each in own for one in each.accesses if one.is_write}
        known = kernel.launch_domain.intersect_params(scop.context)
        self.launches = sizes.number(known) if kernel.host_loops else 1
        self.boxes = [self._touched(one, lengths[one.array][-1]) for one in references]

    def trips(self, loop: Loop, moving: Sequence[isl.Set]) -> int:
        """Return the trips of a loop over all launches, of domains that move along it."""
        return self.values(loop, moving) if loop.trip_count is None else max(1, loop.trip_count)

    def values(self, loop: Loop, domains: Sequence[isl.Set]) -> int:
        """Return how many values a loop has in domains."""
        points = [self.sizes.at(domain).project_out_all_params() for domain in domains]
        known = isl.Set.universe(points[0].get_space().params())
        found = trip_count(points, loop.name, known)
        return ASSUMED_SIZE if found is None else max(1, found)

    def _touched(self, reference: Reference, row_elements: int) -> TouchedBox | None:
        """Return what a reference touches in one launch, ``None`` where that is not known."""
        subscripts = reference.subscripts
        if not self.launches or not all(one.affine for one in subscripts):
            return None
        domain = self.sizes.at(reference.relation.domain())
        every = domain.project_out_all_params()
        names = dim_names(domain)
        loops = [name for one in subscripts for name in one.loops]
        values = {name: _values(every, name) for name in dict.fromkeys(loops)}
        known = {name: own for name, own in values.items() if own is not None}
        others = [name for name in names if name not in values]
        points = without_parameters(dims_as_parameters(domain, names), others)
        kept = (*self.kernel.host_loops, *values)
        touched = count(parameters_as_dims(points, kept, "touched"))
        if len(known) < len(values) or not isinstance(touched, Constant):
            return None
        box = touched_box(
            [(one.coefficients, one.offset) for one in subscripts],
            known,
            row_elements,
            self.types[reference.array].size_bytes,
            tuple(one.symbols for one in subscripts),  # from launch to launch
        )
        whole = prod(trips for _, _, trips in known.values())
        if len(values) < len(loops):  # one loop moves along several dimensions
            whole = prod(end - start for start, end in box.intervals)
        return replace(box, fill=min(1.0, touched.value / (self.launches * whole)))


class _StatementCounter:
    """One statement of a kernel.

    ``moving`` are the loops that its instances move along, ``points`` where they run. The value of
    each access may change along the loops of ``along``: what the kernel writes along all of them, a
    scalar that it only reads along none.
    """

    def __init__(self, of: _Counter, name: str) -> None:
        self.of, self.statement = of, of.scop.statement(name)
        schedule = of.schedules[name]
        self.points = schedule.intersect_domain(self.statement.domain).range()
        forms = zip(of.names, map(affine_form, output_affs(schedule)), strict=True)
        self.moving = tuple(loop for loop, form in forms if form is None or form.coefficients)
        self.in_doubles = is_in_doubles(self.statement.value)
        self.positions = [
            reference_of(one.array, one.text, name, of.references)
            for one in self.statement.accesses
        ]
        accesses = zip(self.statement.accesses, self.positions, strict=True)
        self.along = [self._along(one.array, position) for one, position in accesses]

    def _along(self, array: str, position: int | None) -> frozenset[str]:
        moving = frozenset(self.moving)
        if array in self.of.written:
            return moving
        if position is None:
            return frozenset()
        subscripts = self.of.references[position].subscripts
        if not all(one.affine for one in subscripts):
            return moving
        return moving & {name for one in subscripts for name, c in one.coefficients if c}

    def facts(self) -> StatementFacts:
        """Return what is known of the statement."""
        of, statement, moving = self.of, self.statement, self.moving
        accesses, own, fewer = self._accesses(), self._arithmetic(statement), self._in_sum()
        coupled = coupled_dims(self.points)
        instances = of.sizes.number(statement.domain.intersect_params(of.scop.context))
        host_counters = min(len(of.kernel.host_loops), len(statement.loops))
        return StatementFacts(
            name=statement.name,
            loops=moving,
            instances=instances,
            operations=own.operations,
            repeated=own.repeated,
            integer_products=own.integer_products,
            in_sum=None if fewer is None else self._arithmetic(fewer),
            element_bytes=ElementType.DOUBLE.size_bytes
            if self.in_doubles
            else max((a.element_bytes for a in accesses), default=4),
            accesses=accesses,
            coupled=tuple(of.names[at] for at in coupled),
            late=self._late(instances or 0) if 0 in coupled and of.launches == 1 else 0.5,
            tied=len(moving) > len(statement.loops) - host_counters,
        )

    def _late(self, instances: int) -> float:
        """Return the share of the instances in the second half of the first loop."""
        points = self.of.sizes.at(self.points)
        ends = points.dim_min_val(0).add(points.dim_max_val(0))
        later = points.lower_bound_val(SET, 0, ends.add(1).div(2).ceil())
        return (self.of.sizes.number(later) or 0) / max(1, instances)

    def _arithmetic(self, statement: Statement) -> Arithmetic:
        """Return the operations, and those whose value stays the same along some loops."""
        types = self.of.scop.types
        sizes = [value for _, value in self.of.scop.size_macros]
        operations = operations_of(statement, types, self.along, sizes)
        repeated: dict[Names, list[tuple[str, int]]] = {}
        for (kind, loops), often in operations.along.items():
            own = tuple(name for name in self.moving if name in loops)
            if own != self.moving:
                repeated.setdefault(own, []).append((kind, often))
        return Arithmetic(
            operations=tuple(operations.counts.items()),
            repeated=tuple((own, tuple(kinds)) for own, kinds in repeated.items()),
            integer_products=operations.integer_products,
        )

    def _in_sum(self) -> Statement | None:
        """Return the statement as generated code has it in a sum, ``None`` if it is as it was.

        Scalars that what it adds is multiplied by are left out, and factors that move along the
        same parallel loops are multiplied with each other first.
        """
        scop, statement, accesses = self.of.scop, self.statement, self.statement.accesses
        parallel = frozenset(their_names(self.of.kernel.parallel_loops))
        target = statement.write.text

        def is_target(value: Expression) -> bool:
            return isinstance(value, Read) and accesses[value.access].text == target

        def is_scalar(value: Expression) -> bool:
            if isinstance(value, Unary) and value.operator == "-":
                return is_scalar(value.operand)
            if not isinstance(value, Read):
                return False
            array = accesses[value.access].array
            return array not in scop.written_arrays and scop.array(array).n_dims == 0

        def moves(value: Expression) -> frozenset[str]:
            return self.along[value.access] & parallel if isinstance(value, Read) else parallel

        added = added_to(
            statement.value, is_target, lambda at: scop.array(accesses[at].array).element_type
        )
        left = [] if added is None else [one for one in factors(added) if not is_scalar(one)]
        if not left:
            return None
        product = regrouped(left, moves) if all(isinstance(one, Read) for one in left) else None
        product = product or product_of(left)
        if product == added:
            return None
        read = next(n for n, one in enumerate(accesses) if n and one.text == target)
        value = Binary("+", Read(read), product)
        return replace(statement, value=value)

    def _accesses(self) -> tuple[AccessFacts, ...]:
        of, firsts, found = self.of, self._firsts(), []
        every = [*zip(self.statement.accesses, self.positions, strict=True)]
        always = {*read_always(self.statement.value)}
        for position in dict.fromkeys(self.positions):
            if position is None:
                continue  # a scalar
            mine = [access for access, own in every if own == position]
            reference, kind = of.references[position], of.types[of.references[position].array]
            steps: dict[str, int] = {}
            layout = of.layouts[reference.array]
            for subscript, apart in zip(reference.subscripts, layout, strict=True):
                for loop, factor in subscript.coefficients:
                    if loop in self.moving:
                        steps[loop] = steps.get(loop, 0) + factor * apart
            last = reference.subscripts[-1]  # a reference has some
            origin = last.offset + sum(c * firsts.get(loop, 0) for loop, c in last.coefficients)
            found.append(
                AccessFacts(
                    reference=position,
                    array=reference.array,
                    element_bytes=kind.size_bytes,
                    reads=sum(not access.is_write for access in mine),
                    writes=any(access.is_write for access in mine),
                    strides=tuple((loop, step) for loop, step in steps.items() if step),
                    subscripts=tuple(
                        (tuple((n, c) for n, c in s.coefficients if n in self.moving), s.offset)
                        for s in reference.subscripts
                    ),
                    affine=all(s.affine for s in reference.subscripts),
                    origin=origin,
                    converts=kind is ElementType.HALF
                    or (self.in_doubles and kind is ElementType.FLOAT),
                    loaded_ahead=kind.is_floating
                    and any(own == position for n, (_, own) in enumerate(every) if n in always),
                    touched=of.boxes[position],
                )
            )
        return tuple(found)

    def _firsts(self) -> dict[str, int]:
        """Return the least value of each loop that has one, whatever the host loops are at."""
        points, found = self.of.sizes.at(self.points), {}
        for position, name in enumerate(self.of.names):
            if points.dim_has_lower_bound(SET, position):
                least = constant_value(points.dim_min(position))
                if least is not None:
                    found[name] = least
        return found


def _values(points: isl.Set, name: str) -> Values | None:
    """Return the values that a loop takes, ``None`` where it has no end."""
    line = only_dim(points, name)
    ends = extremes(line)
    if ends is None:
        return None
    first, last = ends
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
