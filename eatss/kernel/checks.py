"""Is a kernel well formed? Runs on each kernel, after lowering and after every transformation."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from eatss.kernel.nodes import Declare, Element, For, Kernel, Let, Node
from eatss.kernel.uses import elements, inside, own_expressions
from eatss.program import names_in

_COORDINATES = ("threadIdx.", "blockIdx.", "blockDim.", "gridDim.")


def kernel_faults(kernel: Kernel, sizes: Collection[str]) -> tuple[str, ...]:
    """Return what is wrong with a kernel, in words; nothing if it is well formed.

    Every name is known where it stands, every element has a subscript for each dimension of its
    buffer, and buffers of threads and blocks are declared.

    Args:
        kernel: the kernel.
        sizes: names that are known without being passed, as macros are.
    """
    known = {*sizes, *(argument.name for argument in kernel.arguments)}
    declared = {buffer.name for buffer in kernel.shared}
    return tuple(dict.fromkeys(_faults(kernel.body, known, declared)))


def _faults(nodes: Sequence[Node], known: set[str], declared: set[str]) -> Iterator[str]:
    known, declared = set(known), set(declared)
    for node in nodes:
        inner = known | {node.counter} if isinstance(node, For) else known
        for name in {one for expression in own_expressions(node) for one in names_in(expression)}:
            if name not in inner and not name.startswith(_COORDINATES):
                yield f"nothing is called {name} where it is used"
        for element in elements(node):
            yield from _element_faults(element, declared)
        for body in inside(node):
            yield from _faults(body, inner, declared)
        if isinstance(node, Let):
            known.add(node.name)
        elif isinstance(node, Declare):
            declared.add(node.buffer.name)


def _element_faults(element: Element, declared: set[str]) -> Iterator[str]:
    buffer = element.buffer
    if buffer.space in ("shared", "register") and buffer.name not in declared:
        yield f"the {buffer.space} buffer {buffer.name} is not declared where it is used"
    if len(element.subscripts) != len(buffer.layout.extents):
        dimensions, given = len(buffer.layout.extents), len(element.subscripts)
        yield f"{buffer.name} has {dimensions} dimensions, and an element {given} subscripts"
