"""Parts of small kernels, and a machine that runs them as one thread does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eatss.lower.kernel.nodes import (
    Argument,
    Buffer,
    Element,
    Extents,
    For,
    If,
    Kernel,
    Let,
    Node,
    Scope,
    Space,
    Unroll,
)
from eatss.polyhedral.expression import ElementType
from eatss.program import Constant, IntExpr, Name, evaluate

N, THREAD, ZERO = Name("n"), Name("threadIdx.x"), Constant(0)


def buffer(
    name: str,
    space: Space = "shared",
    *extents: IntExpr | int,
    of: ElementType = ElementType.FLOAT,
) -> Buffer:
    sizes = (Constant(one) if isinstance(one, int) else one for one in extents)
    return Buffer(name=name, space=space, element_type=of, layout=Extents(tuple(sizes)))


def at(of: Buffer, *subscripts: IntExpr) -> Element:
    return Element(buffer=of, subscripts=subscripts)


def loop(
    counter: str,
    end: IntExpr | int,
    *body: Node,
    lower: IntExpr = ZERO,
    unroll: Unroll = None,
) -> For:
    return For(
        counter=counter,
        lower=lower,
        condition=Name(counter) < end,
        step=Constant(1),
        body=body,
        unroll=unroll,
        narrow=True,
    )


def only_if(*conditions: IntExpr, body: Sequence[Node] = (), orelse: Sequence[Node] = ()) -> If:
    return If(conditions=conditions, body=tuple(body), orelse=tuple(orelse))


def kernel(
    *body: Node, arguments: Sequence[Argument] = (), shared: Sequence[Buffer] = ()
) -> Kernel:
    return Kernel(
        name="f",
        threads=32,
        arguments=tuple(arguments),
        shared=tuple(shared),
        static_shared_bytes=48 << 10,
        index_bits=32,
        body=body,
    )


class Machine:
    """Runs loops, tests and constants; what other nodes do a subclass says."""

    def run(self, nodes: Sequence[Node], names: Mapping[str, int]) -> None:
        known = dict(names)
        for node in nodes:
            match node:
                case Let():
                    known[node.name] = evaluate(node.value, known)
                case Scope():
                    self.run(node.body, known)
                case For():
                    value = evaluate(node.lower, known)
                    while evaluate(node.condition, {**known, node.counter: value}):
                        self.run(node.body, {**known, node.counter: value})
                        value += evaluate(node.step, known)
                case If():
                    holds = all(evaluate(one, known) for one in node.conditions)
                    self.run(node.body if holds else node.orelse, known)
                case _:
                    self.do(node, known)

    def do(self, node: Node, names: Mapping[str, int]) -> None:
        raise AssertionError(node)


def place(one: Element, names: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(evaluate(part, names) for part in one.subscripts)
