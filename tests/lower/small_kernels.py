"""Parts of small kernels, and a machine that runs them as one thread does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from eatss.lower.kernel.nodes import (
    Argument,
    Barrier,
    Buffer,
    Copy,
    Element,
    Extents,
    Fixup,
    For,
    If,
    Kernel,
    Let,
    Node,
    PartialSum,
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


def element(name: str) -> Element:
    """Return an element of doubles: of an array called A, G, H, else of a tile; ``S2`` is another.

    It is the one of the thread in ``S[n]``, and the one of another thread in ``S2``.
    """
    memory = buffer(name[0], "global" if name[0] in "AGH" else "shared", 8, of=ElementType.DOUBLE)
    return at(memory, 63 - N if name[1:] else N)


def nodes(text: str, **named: Node | IntExpr) -> tuple[Node, ...]:
    """Return what a text says: ``fill S sync loop k { use S } if test { … } else { … }``.

    ``fill`` and ``use`` copy from A and to it, ``copy S T`` copies T to S. ``phase`` and ``apart``
    are scopes of a name. Tests and any other nodes are ``named``. Loops run to n, one of t to m.
    """
    words = re.findall(r"\w+|[{}]", text)[::-1]

    def inside() -> tuple[Node, ...]:
        assert words.pop() == "{"
        return body()

    def body() -> tuple[Node, ...]:
        found: list[Node] = []
        while words and words[-1] != "}":
            found.append(node(words.pop()))
        del words[-1:]
        return tuple(found)

    def node(word: str) -> Node:
        match word:
            case "sync":
                return Barrier()
            case "fill" | "use" | "copy":
                one = words.pop()
                target, source = (one, words.pop() if word == "copy" else "A")
                ends = (source, target) if word == "use" else (target, source)
                return Copy(target=element(ends[0]), source=element(ends[1]))
            case "loop":
                counter = words.pop()
                return loop(counter, Name("m") if counter == "t" else N, *inside())
            case "phase" | "apart":
                return Scope(**{word: words.pop()}, body=inside())
            case "if":
                test, holds = named[words.pop()], inside()
                orelse = inside() if words[-1:] == ["else"] and words.pop() else ()
                assert isinstance(test, IntExpr)
                return only_if(test, body=holds, orelse=orelse)
        found = named[word]
        assert not isinstance(found, IntExpr)
        return found

    return body()


PARTS, ARRIVED = buffer("parts", "global", 8, 4), buffer("arrived", "global", 4)
SUMS = buffer("sum", "register", 4)


def together(
    slot: str = "part", own: str = "n", sum_at: str = "s", *, number: IntExpr = N
) -> Fixup:
    """Return sums of which blocks have parts."""
    one = PartialSum(
        counters=("s",), extents=(4,), sum=at(SUMS, Name(sum_at)),
        left=at(PARTS, N, Name("s")), found=at(PARTS, Name(slot), Name("s")),
    )  # fmt: skip
    return Fixup(
        name="whole", number=number, own=Name(own), part="part", thread=THREAD,
        arrived=at(ARRIVED, N), sums=(one,),
    )  # fmt: skip


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
