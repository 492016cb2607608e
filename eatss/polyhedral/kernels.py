"""Kernels from the pieces of the schedule tree: loops, trip counts, references, reductions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import islpy as isl

from eatss.base.free_names import free_name
from eatss.polyhedral.isl_names import (
    affine_form,
    bind_leading_outputs,
    coalesced,
    constant_value,
    counter_of,
    dim_names,
    drop_leading_outputs,
    function_on,
    has_bounds,
    integer,
    leading_dims,
    named_map,
    only_dim,
    stride_of,
)
from eatss.polyhedral.kernel import Kernel, Loop
from eatss.polyhedral.program import Dependences
from eatss.polyhedral.reductions import find_reductions
from eatss.polyhedral.references import Placed, merge_references
from eatss.polyhedral.scops import Scop, Statement
from eatss.polyhedral.tree import KernelTree, Member


@dataclass(frozen=True, slots=True)
class _Placement:
    """A statement of a kernel and, for each loop, the function of its counters it runs at.

    ``inside`` are the loops around it, ``moving`` those its instances move along; in loops
    that are not around it, it is put at 0.
    """

    statement: Statement
    functions: tuple[isl.PwAff, ...]
    inside: tuple[bool, ...]
    moving: tuple[bool, ...]


def build_kernels(
    scop: Scop, dependences: Dependences, trees: Sequence[KernelTree]
) -> tuple[Kernel, ...]:
    """Turn the pieces of the schedule tree into kernels, in launch order."""
    return tuple(_kernel(scop, dependences, tree, index) for index, tree in enumerate(trees))


def _kernel(scop: Scop, dependences: Dependences, tree: KernelTree, index: int) -> Kernel:
    all_loops = tree.host + tree.band + tree.inner
    placements = _place(scop, tree, all_loops)
    names = _loop_names(all_loops, placements, taken=scop.parameters)
    n_host = len(tree.host)
    name = f"k{index}"
    full = [
        named_map(p.statement.domain, p.functions, name, names).intersect_domain(p.statement.domain)
        for p in placements
    ]
    loops = tuple(
        Loop(
            name=names[k],
            parallel=all_loops[k].parallel,
            trip_count=trip_count(
                [m.range() for m, p in zip(full, placements, strict=True) if p.inside[k]],
                names[k],
                scop.context,
            ),
        )
        for k in range(n_host, len(all_loops))
    )
    placed = tuple(
        Placed(
            statement=p.statement,
            schedule=bind_leading_outputs(m, names[:n_host]),
            moving=tuple(names[k] for k in range(n_host, len(names)) if p.moving[k]),
        )
        for m, p in zip(full, placements, strict=True)
    )
    schedule = scop.no_relation
    launches = leading_dims(full[0].range(), n_host)
    for relation in full:
        launches = launches.union(leading_dims(relation.range(), n_host))
        schedule = schedule.union(drop_leading_outputs(relation, n_host))
    references = merge_references(placed, names[n_host:])
    return Kernel(
        name=name,
        index=index,
        statements=tuple(p.statement.name for p in placements),
        host_loops=names[:n_host],
        loops=loops[: len(tree.band)],
        inner_loops=loops[len(tree.band) :],
        permutable=tree.permutable,
        schedule=schedule,
        launch_domain=coalesced(launches),
        references=references,
        reductions=find_reductions(scop, dependences, placed, references),
    )


def _place(scop: Scop, tree: KernelTree, loops: Sequence[Member]) -> tuple[_Placement, ...]:
    """Place every statement of the kernel, in source order."""
    placements = []
    for statement in scop.statements:
        for leaf in tree.leaves:
            if statement.name not in leaf.statements:
                continue
            space = statement.domain.get_space()
            zero = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(space))
            around = {m.key for m in tree.host + tree.band + leaf.inner}
            functions = tuple(
                function_on(m.function, statement.domain) if m.key in around else zero
                for m in loops
            )
            moving = tuple(map(_moves, functions))
            inside = tuple(m.key in around for m in loops)
            placements.append(_Placement(statement, functions, inside, moving))
    return tuple(placements)


def _moves(function: isl.PwAff) -> bool:
    form = affine_form(function)
    return form is None or bool(form.coefficients)


def _loop_names(
    loops: Sequence[Member], placements: Sequence[_Placement], taken: Sequence[str]
) -> tuple[str, ...]:
    """Name each loop by the counter it is, up to a shift, for the deepest statement in it."""
    used = set(taken)
    names: list[str] = []
    deepest_first = sorted(placements, key=lambda p: -len(p.statement.loops))
    for position in range(len(loops)):
        wanted = None
        for placement in deepest_first:
            if placement.moving[position]:
                wanted = counter_of(placement.functions[position], shifted=True)
                break
        names.append(_free_name(wanted, used))
    return tuple(names)


def _free_name(wanted: str | None, used: set[str]) -> str:
    if wanted is None:
        wanted = next(name for k in count() if (name := f"c{k}") not in used)
    return free_name(wanted, used)


_ENUMERATED = 1 << 16  # a longer range with irregular holes is not counted one by one


def trip_count(domains: Sequence[isl.Set], loop: str, context: isl.Set) -> int | None:
    """Count the values ``loop`` takes over all ``domains``.

    Args:
        domains: sets of kernel points; each has a dimension called ``loop``.
        loop: the dimension counted.
        context: what is known of the parameters.

    Returns:
        The number of values; ``None`` where it depends on a parameter.
    """
    parts = [only_dim(domain.intersect_params(context), loop) for domain in domains]
    values = parts[0].reset_tuple_id()
    for part in parts[1:]:
        values = values.union(part.reset_tuple_id())
    values = coalesced(values)
    if values.is_empty():
        return 0
    (name,) = dim_names(values)
    if not has_bounds(values, name):
        return None
    known = values.params()
    reach = coalesced(values.dim_max(0).sub(values.dim_min(0)).gist_params(known))
    span = constant_value(reach)
    if span is None:
        return None
    return _count(values, name, span)


def _count(values: isl.Set, name: str, span: int) -> int | None:
    """Count the values of a range of ``span + 1`` that may have holes."""
    if _steps(values, 1).is_subset(values):
        return span + 1
    stride = stride_of(values, name)
    if stride > 1 and _steps(values, stride).is_subset(values):
        return span // stride + 1
    if span > _ENUMERATED or not values.params().is_singleton():
        return None
    return integer(values.project_out_all_params().count_val())


def _steps(values: isl.Set, stride: int) -> isl.Set:
    """Return the integers from the smallest to the largest value in steps of some length."""
    up = f"{{ [a] -> [x] : x >= a and (x - a) mod {stride} = 0 }}"
    from_least, to_greatest = (
        isl.Map.read_from_str(values.get_ctx(), text) for text in (up, "{ [a] -> [x] : x <= a }")
    )
    found: isl.Set = values.lexmin().apply(from_least)
    return found.intersect(values.lexmax().apply(to_greatest))
