"""Copies of single halves in two parts: into registers, and from there into boxes."""

from __future__ import annotations

from dataclasses import replace

from eatss.lower.kernel.nodes import Buffer, Copy, Element, Extents, For, Let, Staging, Way
from eatss.lower.kernel.uses import every
from eatss.lower.transform.copy_ways import NarrowLines
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, IntExpr, Name, Operator, total

HALF = ElementType.HALF
ARRAY = Buffer(
    name="A", space="global", element_type=HALF, layout=Extents((Name("n"), Constant(33)))
)
BOX = Buffer(
    name="A", space="shared", element_type=HALF, layout=Extents((Constant(32), Constant(40)))
)
HERE = Apply(Operator.LT, (Name("x"), Name("n")))
WHOLE = Apply(Operator.LT, (Name("k0"), Name("n")))


def walk(*, condition: IntExpr | None = None) -> For:
    """Return a loop over a thread's elements, each of a row of its own."""
    place = total(Name("t"), Name("e"))
    copy = Copy(
        target=Element(buffer=BOX, subscripts=(place, Name("t"))),
        source=Element(buffer=ARRAY, subscripts=(Name("x"), Name("t"))),
        condition=condition,
    )
    return For(
        counter="e",
        lower=Constant(0),
        condition=Apply(Operator.LT, (Name("e"), Constant(8))),
        step=Constant(1),
        body=(Let(name="x", value=total(Name("k0"), place)), copy),
        unroll="whole",
        narrow=True,
    )


def stage(*ways: For) -> Staging:
    """Return a stage that takes the first way where the tile is whole, if there are two."""
    *first, edge = (Way(elements=(one,)) for one in ways)
    return Staging(ways=(*(replace(one, conditions=(WHOLE,)) for one in first), edge))


def parted(*stages: Staging) -> NarrowLines | None:
    return NarrowLines.of(stages, {"A_line"})


def test_each_branch_fills_registers_and_one_loop_the_box() -> None:
    both = stage(walk(), walk(condition=HERE))
    found = parted(both)
    assert found is not None
    (line,) = found.declared
    assert (line.name, line.layout.elements, found.words) == ("A_line_1", 8, 8)
    loads = [one for one in every(found.loads) if isinstance(one, Copy)]
    assert [one.target for one in loads] == 2 * [Element(buffer=line, subscripts=(Name("e"),))]
    assert [one.clears for one in loads] == [False, True]  # else they would be as they were
    (store,) = [one for one in every(found.stores) if isinstance(one, Copy)]
    assert store.target == next(o.target for o in every((both,)) if isinstance(o, Copy))
    assert (store.source, store.condition) == (loads[0].target, None)


def test_wider_copies_stay_in_front() -> None:
    vectors = replace(walk(), body=tuple(
        replace(one, width=8) if isinstance(one, Copy) else one for one in walk().body
    ))  # fmt: skip
    wide = Staging(ways=(Way(elements=(walk(),), wide=(WHOLE,), vectors=(vectors,)),))
    assert parted(wide) is None
    found = parted(wide, stage(walk()))
    assert found is not None
    assert found.loads[0] == wide
    assert len(found.stores) == 1


def test_loops_that_are_not_unrolled_stay() -> None:
    assert parted(stage(replace(walk(), unroll=None))) is None
