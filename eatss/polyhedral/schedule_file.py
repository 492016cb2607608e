"""Schedules that were saved, and programs for any size."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import islpy as isl

from eatss.base.diagnostics import EatssError, InputError, InternalError, input_error
from eatss.base.frozen import frozen
from eatss.polyhedral.collapsed_loops import has_collapsed_loops, with_collapsed_loops
from eatss.polyhedral.copied_operands import copied_places, with_copied_operands
from eatss.polyhedral.dependences import bounded_work, ran_out
from eatss.polyhedral.isl_names import node_kind, parameter_names, set_names
from eatss.polyhedral.kernel import Dependences, ScheduledScop
from eatss.polyhedral.ppcg import Carrier, carried_over
from eatss.polyhedral.recomputed_producers import (
    recomputed_arrays,
    with_recomputed_producers,
)
from eatss.polyhedral.schedule import (
    instantiate_schedule,
    launching_all,
    schedule_scop,
    with_schedule,
)
from eatss.polyhedral.scheduling import local_dependences, tagger_of
from eatss.polyhedral.scop import Scop
from eatss.polyhedral.tiled_sums import is_tiled_sum, with_tiled_sums
from eatss.polyhedral.tree import (
    PARTED,
    bands,
    children,
    coincident,
    marked,
    preorder,
    runs_forward,
    with_parts,
)

# -- schedule file -----------------------------------------------------------------------------
# Schedules as text: saved, edited by hand, and loaded again with every check.
#
# A file holds isl's schedule tree of one region. What a loaded tree does wrong is a mistake in the
# file, so that each check that fails is an ``InputError`` that says which.


SCHEMA = "eatss-schedule"
VERSION = 1

_PARTS = re.compile(r"(\d+)")
_PIECES = re.compile(r"\{ ([^{}]*) \}")
NESTED = re.compile(r"(?:(?:[-!(\[{]|not\b|exists\b)\s*){50}")
"""What isl's reader of sets would end the process at, if there were enough of it."""


_REPAIR = (
    "save the schedule again for these sizes and this region; every instance has to run once, in "
    "an order that keeps the dependences, and marks are 1 only where loops allow it"
)


def save_schedule(scheduled: ScheduledScop) -> str:
    """Return the schedule of a region as JSON text.

    The tree has isl's nodes under isl's names: ``domain``, bands (``schedule`` with the functions
    of the loops, ``permutable`` if they may be tiled, ``coincident`` for those that are
    parallel), ``sequence`` and ``set`` of ``filter``; sets and functions are isl's text. ``copied``
    are the reads that are from copies, as statement and number of the access; ``collapsed`` says
    that the loops are those of :func:`~eatss.polyhedral.collapsed_loops.with_collapsed_loops`,
    ``recomputed`` are the arrays that are computed anew where they are read.
    """
    scop = scheduled.scop
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "version": VERSION,
        "function": scop.function,
        "region": scop.index,
        "statements": [{"name": s.name, "text": s.text} for s in scop.statements],
        "schedule": _tree(scheduled.schedule.get_root()),
    }
    if names := recomputed_arrays(scop):
        document["recomputed"] = list(names)
    if has_collapsed_loops(scop):
        document["collapsed"] = True
    if places := copied_places(scop):
        document["copied"] = [list(place) for place in sorted(places)]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def load_schedule(scop: Scop, text: str, *, max_operations: int | None = None) -> ScheduledScop:
    """Schedule a region as a saved, perhaps edited file says, and cut it into kernels.

    Args:
        scop: the region.
        text: what :func:`save_schedule` returned.
        max_operations: bound on isl's work; ``None`` for the default of the scheduler.

    Raises:
        InputError: ``EATSS-P010`` the text is no schedule file, is for another region, or its tree
            cannot be read; ``EATSS-P013`` the tree does not run this region's instances once each,
            breaks a dependence, or marks a loop parallel that carries one, or so does a band
            marked permutable in a way that forbids tiling. Else as for ``schedule_scop``.
    """
    document = _document(text)
    scop = _as_saved(scop, document)
    _check_region(scop, document)
    schedule = _read_tree(scop, document.get("schedule"), max_operations)
    try:
        with bounded_work(scop, max_operations):
            _check_instances(scop, schedule)
        scheduled = with_schedule(scop, schedule, max_operations=max_operations)
        with bounded_work(scop, max_operations):
            _check_permutable(scop, scheduled)
    except InternalError as error:
        if error.code != "EATSS-P901":
            raise
        message = error.diagnostics[0].message.replace("the new schedule", "the loaded schedule")
        raise _error("EATSS-P013", message, _REPAIR, scop) from None
    except isl.Error as error:  # functions that are none (NaN, 1/0)
        message = f"isl cannot work with the tree in the schedule file: {error}"
        raise _error("EATSS-P010", message, "save the schedule again", scop) from None
    return scheduled


def _check_permutable(scop: Scop, scheduled: ScheduledScop) -> None:
    """Refuse bands whose mark would let them be tiled against a dependence."""
    for node in bands(scheduled.schedule.get_root()):
        if not node.band_get_permutable() or _is_permutable(scheduled.dependences, node):
            continue
        if not is_tiled_sum(scheduled, node):
            raise _error(
                "EATSS-P013",
                "the loaded schedule marks a band permutable whose loops may not change places",
                "set permutable to 0, or undo the change of its loops",
                scop,
            )


def _error(code: str, message: str, hint: str, scop: Scop | None = None) -> InputError:
    return input_error(code, message, hint=hint, span=None if scop is None else scop.span)


def _tree(node: isl.ScheduleNode) -> dict[str, Any] | None:
    """Return a subtree as plain JSON, with isl's names for its parts."""
    kind = node_kind(node)
    found: dict[str, Any] = {}
    if kind in PARTED:
        return {"sequence" if kind == "sequence" else "set": list(map(_tree, children(node)))}
    if kind == "domain":
        found["domain"] = _text(node.domain_get_domain())
    elif kind == "filter":
        found["filter"] = _text(node.filter_get_filter())
    elif kind == "band" and node.band_n_member():
        found["schedule"] = _text(node.band_get_partial_schedule())
        found["permutable"] = int(node.band_get_permutable())
        found["coincident"] = list(map(int, coincident(node)))
    child = _tree(node.get_child(0)) if node.n_children() else None
    if child is not None and not found:
        return child
    return (found | {"child": child} if child is not None else found) or None


def _text(piece: isl.UnionSet | isl.MultiUnionPwAff) -> str:
    return _PIECES.sub(_sorted_pieces, str(piece))


def _sorted_pieces(match: re.Match[str]) -> str:
    """Put the pieces of a union in order: isl prints them in that of a hash."""
    pieces = sorted(match[1].split("; "), key=_natural)
    return "{ " + "; ".join(pieces) + " }"


def _natural(text: str) -> tuple[tuple[int, str], ...]:
    """Return a key that sorts S2 before S10."""
    return tuple((int(part), "") if part.isdecimal() else (0, part) for part in _PARTS.split(text))


def _document(text: str) -> dict[str, Any]:
    hint = "load a file that eatss saved"
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise _error("EATSS-P010", "the schedule file is not JSON", hint) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise _error("EATSS-P010", "the file is not a schedule of eatss", hint)
    if document.get("version") != VERSION:
        version = json.dumps(document.get("version"))
        message = f"the schedule file has version {version}; this release reads {VERSION}"
        raise _error("EATSS-P010", message, "save the schedule again with this release")
    return document


def _as_saved(scop: Scop, document: dict[str, Any]) -> Scop:
    """Return a region with all that was done to the one whose schedule was saved."""
    names = document.get("recomputed")
    names = list(map(str, names)) if isinstance(names, list) else None
    scop = changed_as(scop, names, collapsed=document.get("collapsed") is True)
    known = {(one.name, n) for one in scop.statements for n in range(1, len(one.accesses))}
    listed = document.get("copied")
    listed = listed if isinstance(listed, list) else []
    places = [tuple(one) for one in listed if isinstance(one, list)]
    return with_copied_operands(scop, [one for one in known if one in places])


def changed_as(scop: Scop, recomputed: Sequence[str] | None, *, collapsed: bool) -> Scop:
    """Return a region in which arrays are computed anew and loops collapsed as in another one."""
    if recomputed is not None and not recomputed_arrays(scop):
        scop = with_recomputed_producers(scop, recomputed) or scop
    return with_collapsed_loops(scop) if collapsed else scop


def _check_region(scop: Scop, document: dict[str, Any]) -> None:
    here = (scop.function, scop.index)
    there = (document.get("function"), document.get("region"))
    if here != there:
        raise _error(
            "EATSS-P010",
            f"the schedule is for region {there[1]} of '{there[0]}', not for region "
            f"{here[1]} of '{here[0]}'",
            "load it for the region it was saved for",
            scop,
        )
    statements = [{"name": s.name, "text": s.text} for s in scop.statements]
    if document.get("statements") != statements:
        raise _error(
            "EATSS-P010",
            "the statements of the region are not those the schedule was saved for",
            "save the schedule again after changes of the source",
            scop,
        )


def _read_tree(scop: Scop, tree: object, max_operations: int | None) -> isl.Schedule:
    """Build the schedule in the context of ``scop``.

    isl's own reader of whole trees crashes on text that is not one, so that only the sets
    and functions in it are read by isl.
    """
    reader = _TreeReader(scop)
    with bounded_work(scop, max_operations):
        try:
            return reader.schedule(tree)
        except isl.Error:
            if ran_out(scop):
                raise
    raise reader.error("isl cannot read a set or function in the tree")


class _TreeReader:
    """Builds a schedule tree from plain JSON, node by node."""

    def __init__(self, scop: Scop) -> None:
        self._scop = scop

    def error(self, problem: str) -> InputError:
        """Return the error of a tree that cannot be read."""
        hint = "restore this part of the file, or save the schedule again"
        return _error("EATSS-P010", f"the schedule file is damaged: {problem}", hint, self._scop)

    def schedule(self, tree: object) -> isl.Schedule:
        """Return the schedule of a whole tree."""
        root = self._keys(tree, {"domain"})
        top = isl.Schedule.from_domain(self._set(root["domain"])).get_root().child(0)
        return self._insert(top, root.get("child")).get_schedule()

    def _insert(self, leaf: isl.ScheduleNode, tree: object) -> isl.ScheduleNode:
        """Put a subtree at a leaf; return the node there."""
        if tree is None:
            return leaf
        if isinstance(tree, dict) and "schedule" in tree:
            return self._insert_band(leaf, tree)
        for kind in ("sequence", "set"):
            if isinstance(tree, dict) and kind in tree:
                return self._insert_parts(leaf, kind, self._keys(tree, {kind})[kind])
        raise self.error("a node is no band ('schedule'), no 'sequence' and no 'set'")

    def _insert_band(self, leaf: isl.ScheduleNode, tree: dict[str, Any]) -> isl.ScheduleNode:
        band = self._keys(tree, {"schedule", "permutable", "coincident"})
        functions = self._text(band["schedule"])
        partial = isl.MultiUnionPwAff.read_from_str(self._scop.isl_context, functions)
        marks = band["coincident"]
        node = leaf.insert_partial_schedule(partial)
        size = node.band_n_member()
        if not isinstance(marks, list) or len(marks) != size or not size:
            raise self.error("'coincident' of a band needs one mark for each of its functions")
        permutable = self._mark(band["permutable"])
        node = marked(node, permutable=permutable, parallel=map(self._mark, marks))
        return self._insert(node.child(0), band.get("child")).parent()

    def _insert_parts(self, leaf: isl.ScheduleNode, kind: str, parts: object) -> isl.ScheduleNode:
        if not isinstance(parts, list) or not parts:
            raise self.error(f"'{kind}' is no list of filters")
        trees = [self._keys(part, {"filter"}) for part in parts]
        return with_parts(
            leaf,
            [self._set(tree["filter"]) for tree in trees],
            lambda at, below: self._insert(below, trees[at].get("child")),
            in_order=kind == "sequence",
        )

    def _set(self, text: object) -> isl.UnionSet:
        return isl.UnionSet.read_from_str(self._scop.isl_context, self._text(text))

    def _keys(self, tree: object, needed: set[str]) -> dict[str, Any]:
        """Return a node that has these keys and perhaps a child, and nothing else."""
        if not isinstance(tree, dict) or not needed <= set(tree) <= {*needed, "child"}:
            raise self.error(f"a node needs {', '.join(sorted(needed))} and may have a child")
        return tree

    def _mark(self, mark: object) -> bool:
        if mark not in (0, 1):
            raise self.error("a mark is neither 0 nor 1")
        return bool(mark)

    def _text(self, text: object) -> str:
        if not isinstance(text, str) or not text.isascii() or NESTED.search(text):
            raise self.error("a set or function is no text in isl's notation")
        return text


def _check_instances(scop: Scop, schedule: isl.Schedule) -> None:
    """Refuse a tree that loses, repeats or splits instances, or knows other parameters."""
    code, hint = "EATSS-P013", _REPAIR
    relation = schedule.get_map().intersect_domain(schedule.get_domain())
    foreign = set(parameter_names(relation.domain().params())) - set(scop.parameters)
    if foreign:
        names = ", ".join(sorted(foreign))
        message = f"the loaded schedule has parameters that the region has not: {names}"
        raise _error(code, message, hint, scop)
    whole = relation.domain().is_equal(scop.domain) and schedule.get_domain().is_equal(scop.domain)
    if not whole or not relation.is_single_valued():
        message = "the loaded schedule does not run every statement instance exactly once"
        raise _error(code, message, hint, scop)
    places = [
        set_names(node.get_domain())
        for node in preorder(schedule.get_root())
        if node_kind(node) == "leaf"
    ]
    if sum(len(names) for names in places) != len(scop.statements):
        message = "the loaded schedule puts instances of one statement into several places"
        raise _error(code, message, hint, scop)


def _is_permutable(dependences: Dependences, band: isl.ScheduleNode) -> bool:
    """Tell whether no dependence inside a band runs backwards along any of its members.

    Order dependences count only next to a live range that spans several points of the band.
    """
    validity = local_dependences(dependences.validity, band)
    return runs_forward(validity.union(_binding_order(dependences, band)), band)


def _binding_order(dependences: Dependences, band: isl.ScheduleNode) -> isl.UnionMap:
    order, flow = dependences.order, dependences.tagged_flow
    if order.is_empty():
        return order.factor_domain()
    tagger = tagger_of(order, flow)
    domain = band.get_domain().preimage_union_pw_multi_aff(tagger)
    time = band.band_get_partial_schedule().pullback_union_pw_multi_aff(tagger)
    point = flow.eq_at_multi_union_pw_aff(time)
    if band.get_schedule_depth():
        prefix = band.get_prefix_schedule_multi_union_pw_aff()
        point = point.eq_at_multi_union_pw_aff(prefix.pullback_union_pw_multi_aff(tagger))
    spanning = flow.subtract(point.intersect_domain(domain).intersect_range(domain))
    bound = order.intersect_domain(spanning.range()).union(order.intersect_range(spanning.domain()))
    return local_dependences(bound.factor_domain(), band)


def save_schedules(regions: Sequence[ScheduledScop]) -> str:
    """Return the schedules of regions as JSON text: one document, or a list of several."""
    texts = [save_schedule(region) for region in regions]
    if len(texts) == 1:
        return texts[0]
    documents = [json.loads(text) for text in texts]
    return json.dumps(documents, indent=2, ensure_ascii=False) + "\n"


# -- any size ----------------------------------------------------------------------------------
# A region scheduled for the numbers of its source, and the same schedule for any size.


@frozen
class SymbolicRegion:
    """One region, scheduled over its macro sizes and over their numbers.

    Where ``generic`` holds, both have the same kernels, host loops, loop names and parallel
    loops. Else ``scheduled`` is ``numeric_scheduled``: code made from it is for the sizes of
    the source alone.
    """

    scheduled: ScheduledScop
    numeric_scheduled: ScheduledScop
    generic: bool


def region_for_any_size(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> SymbolicRegion:
    """Schedule a region for any size as it is for its numbers, where that can be.

    Args:
        symbolic: the region over its macro sizes, in the isl context of ``numeric``.
        numeric: the region over their numbers.
        max_operations: bound on isl's work, as for ``schedule_scop``.
    """
    scheduled = numeric
    if symbolic is not numeric.scop:
        found = _carried_over(symbolic, numeric, max_operations) or _scheduled_alike(
            symbolic, numeric, max_operations
        )
        if found is None:
            return SymbolicRegion(scheduled=numeric, numeric_scheduled=numeric, generic=False)
        scheduled = found
    return SymbolicRegion(scheduled=scheduled, numeric_scheduled=numeric, generic=True)


def loaded_regions(
    regions: Sequence[tuple[Scop, Scop]],
    text: str,
    values: Sequence[tuple[str, int]],
    max_operations: int | None,
) -> dict[int, SymbolicRegion]:
    """Schedule regions as a saved file says.

    Args:
        regions: each region over symbolic sizes and over the numbers of the source, in one isl
            context.
        text: what :func:`~eatss.polyhedral.schedule_file.save_schedules` returned, perhaps edited.
        values: the symbolic sizes with their numbers.
        max_operations: bound on isl's work for one region.

    Returns:
        The regions by number; those that the file does not have are left out. Where the file has a
        schedule over numbers only, the region is not generic.

    Raises:
        InputError: ``EATSS-P010`` to ``EATSS-P013``, as for ``load_schedule``.
    """
    known = {symbolic.index: (symbolic, numeric) for symbolic, numeric in regions}
    found: dict[int, SymbolicRegion] = {}
    for number, document in enumerate(_documents(text)):
        index = document.get("region") if isinstance(document, dict) else None
        pair = known.get(index) if isinstance(index, int) else None
        if pair is None:
            pair = regions[min(number, len(regions) - 1)]  # which is not it: load_schedule says so
        symbolic, numeric = pair
        if symbolic.index in found:
            raise input_error(
                "EATSS-P010",
                f"the schedule file has region {symbolic.index} twice",
                hint="keep one schedule for each region",
            )
        one = json.dumps(document, ensure_ascii=False)
        found[symbolic.index] = _loaded(symbolic, numeric, one, values, max_operations)
    return found


def _documents(text: str) -> list[Any]:
    try:
        found = json.loads(text)
        json.dumps(found)  # what is nested too deeply for that is no schedule either
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return [found]
    if not isinstance(found, list) or not found:
        raise input_error(
            "EATSS-P010", "the file is not a schedule of eatss", hint="load a file that eatss saved"
        )
    return found


def _loaded(
    symbolic: Scop,
    numeric: Scop,
    text: str,
    values: Sequence[tuple[str, int]],
    max_operations: int | None,
) -> SymbolicRegion:
    def over_numbers() -> SymbolicRegion:
        found = launching_all(load_schedule(numeric, text, max_operations=max_operations))
        return SymbolicRegion(scheduled=found, numeric_scheduled=found, generic=False)

    if symbolic is numeric:
        return over_numbers()
    try:
        scheduled = load_schedule(symbolic, text, max_operations=max_operations)
    except InputError as error:
        if error.code != "EATSS-P013":
            raise
        try:  # a schedule that was saved for the numbers alone
            return over_numbers()
        except InputError:
            raise error from None
    names = recomputed_arrays(scheduled.scop) or None
    numeric = changed_as(numeric, names, collapsed=has_collapsed_loops(scheduled.scop))
    numeric = with_copied_operands(numeric, copied_places(scheduled.scop))
    known = tuple(scheduled.scop.with_products(dict(values)).items())
    tree = instantiate_schedule(scheduled.schedule, numeric, known)
    try:
        found = launching_all(with_schedule(numeric, tree, max_operations=max_operations))
    except InternalError as error:  # pragma: no cover - what holds for all sizes holds for these
        raise InputError(*error.diagnostics) from None
    scheduled = launching_all(scheduled)
    generic = same_kernels(scheduled, found)
    return SymbolicRegion(
        scheduled=scheduled if generic else found, numeric_scheduled=found, generic=generic
    )


def same_kernels(one: ScheduledScop, other: ScheduledScop) -> bool:
    """Tell whether two schedules of one region have the same kernels, up to sizes.

    Compared are the statements on the host and, kernel by kernel, statements, host loops,
    and the names, order and parallel marks of the loops.
    """
    return one.host_statements == other.host_statements and _outline(one) == _outline(other)


def _outline(scheduled: ScheduledScop) -> list[tuple[object, ...]]:
    return [
        (
            kernel.name,
            kernel.statements,
            kernel.host_loops,
            kernel.permutable,
            tuple((loop.name, loop.parallel) for loop in kernel.loops),
            tuple((loop.name, loop.parallel) for loop in kernel.inner_loops),
        )
        for kernel in scheduled.kernels
    ]


def _carried_over(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> ScheduledScop | None:
    """Return the region under the schedule for its numbers, ``None`` where it is not for any size.

    isl's integer programs grow with a size that several loops share: two sweeps of a stencil in
    four dimensions took minutes.
    """
    same = symbolic.domain.universe().identity_union_pw_multi_aff()
    carrier = Carrier(domain=symbolic.domain, names=same)
    try:
        schedule = carried_over(numeric.schedule, carrier)
        scheduled = with_schedule(symbolic, schedule, max_operations=max_operations)
        scheduled = scheduled if numeric.host_statements else launching_all(scheduled)
    except (EatssError, isl.Error):
        return None
    return scheduled if same_kernels(scheduled, numeric) else None


def _scheduled_alike(
    symbolic: Scop, numeric: ScheduledScop, max_operations: int | None
) -> ScheduledScop | None:
    """Return the region scheduled anew, ``None`` where its kernels are others."""
    universe = isl.Set.universe(symbolic.context.get_space())
    contexts = [symbolic.context]
    if not symbolic.context.is_equal(universe):
        contexts.append(universe)  # facts may lead the scheduler elsewhere
    for context in contexts:
        try:
            assumed = replace(symbolic, context=context)
            scheduled = schedule_scop(assumed, max_operations=max_operations)
        except (EatssError, isl.Error):
            continue
        for found in (scheduled, with_tiled_sums(scheduled)):
            found = found if numeric.host_statements else launching_all(found)  # noqa: PLW2901
            if same_kernels(found, numeric):
                return replace(found, scop=symbolic)
    return None
