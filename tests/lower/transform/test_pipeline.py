"""Copies are spread over steps: each is made once, in its order, by one node for each tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import given
from hypothesis import strategies as st

from eatss.lower.kernel.nodes import (
    Copy,
    For,
    Let,
    Node,
)
from eatss.lower.kernel.uses import every
from eatss.lower.transform.register_prefetch import Shares
from eatss.program import Name
from tests.lower.small_kernels import (
    Machine,
    at,
    buffer,
    loop,
    place,
)


def copies(name: str, count: int) -> For:
    place = at(buffer(name, "shared", 64), Name("x"))
    copy = Copy(target=place, source=place, ahead=True)
    return loop("e", count, Let(name="x", value=Name("e")), copy, unroll="whole")


class Copies(Machine):
    """Notes the elements that are copied, in their order."""

    def __init__(self) -> None:
        self.done: list[tuple[str, int]] = []

    def do(self, node: Node, names: Mapping[str, int]) -> None:
        assert isinstance(node, Copy)
        (element,) = place(node.target, names)
        self.done.append((node.target.buffer.name, element))


def copied(nodes: Sequence[Node], names: Mapping[str, int]) -> list[tuple[str, int]]:
    machine = Copies()
    machine.run(nodes, names)
    return machine.done


@given(st.lists(st.integers(1, 17), min_size=1, max_size=4), st.integers(2, 9))
def test_every_copy_is_made_once_in_shares_of_equal_size(counts: list[int], steps: int) -> None:
    boxes = {f"box{number}": count for number, count in enumerate(counts)}
    shares = Shares.of([copies(*one) for one in boxes.items()], steps)
    assert shares is not None
    assert shares.steps <= steps
    nodes = shares.of_step("step")
    done = [copied(nodes, {"step": step}) for step in range(shares.steps)]
    assert all(done)
    for name, count in boxes.items():
        own = [[at for box, at in one if box == name] for one in done]
        assert [at for one in own for at in one] == list(range(count))
        share = -(-count // steps)
        whole, rest = divmod(count, share)
        assert [len(one) for one in own if one] == [share] * whole + [rest] * (rest > 0)
        assert (
            sum(isinstance(one, Copy) and one.target.buffer.name == name for one in every(nodes))
            == 1
        )
