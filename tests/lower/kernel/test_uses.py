"""What is read off a kernel's nodes, beside what its text says.

Where elements lie: each in a place of its own.
"""

from __future__ import annotations

import re
from itertools import product

import pytest

from eatss.lower.kernel.nodes import Buffer, Copy, Element, Extents, For, Kernel, Let, Scope
from eatss.lower.kernel.uses import without_unused
from eatss.polyhedral.expression import ElementType
from eatss.program import Apply, Constant, Name, Program, evaluate

N, AT, T = Name("n"), Name("i"), Name("t")
A = Buffer(name="A", space="global", element_type=ElementType.DOUBLE, layout=Extents((N, N)))
R = Buffer(
    name="r", space="register", element_type=ElementType.DOUBLE, layout=Extents((Constant(4),))
)


def element(buffer: Buffer, *subscripts: Name | Constant | Apply) -> Element:
    return Element(buffer=buffer, subscripts=subscripts)


STORE = Copy(target=element(A, AT, T), source=element(R, Constant(2)))


def test_constants_that_nothing_mentions_are_left_out_wherever_they_stand() -> None:
    used, unused = Let(name="i", value=T), Let(name="j", value=T)
    body = (used, unused, Scope(body=(unused.__class__(name="t", value=N), STORE)))
    (first, scope) = without_unused(body)
    assert first == used
    assert isinstance(scope, Scope)
    assert [type(node) for node in scope.body] == [Let, Copy]
    nested = For(counter="k", lower=T, condition=T, step=T, body=(Let(name="u", value=N),))
    assert without_unused([nested]) == (For(counter="k", lower=T, condition=T, step=T, body=()),)


# beside the text of real programs


def bodies(program: Program) -> list[tuple[str, str]]:
    """Return what stands between the parentheses and in the braces of each kernel's text."""
    without_comments = re.sub(r"//.*", "", program.text)
    return re.findall(
        r"__launch_bounds__\([\d, ]+\)\n\w+\((.*?)\)\n\{\n(.*?)\n\}\n", without_comments, re.DOTALL
    )


def words(text: str) -> list[str]:
    return re.findall(r"(?<![.\w])[A-Za-z_]\w*", text)


def test_arguments_are_what_the_text_mentions(
    generated_kernels: tuple[Program, list[Kernel]],
) -> None:
    program, kernels = generated_kernels
    region = {a.name for e in program.entries for a in e.arguments}
    region |= {t.name for e in program.entries for t in e.temporaries}
    found = bodies(program)
    assert len(found) == len(kernels)
    for kernel, (declared, body) in zip(kernels, found, strict=True):
        names = [argument.name for argument in kernel.arguments]
        assert [words(one)[-1] for one in declared.split(",") if one] == names
        assert set(names) <= set(words(body))
        assert region & set(words(body)) <= set(names)


def test_no_constant_of_the_text_is_unused(generated_kernels: tuple[Program, list[Kernel]]) -> None:
    for _, body in bodies(generated_kernels[0]):
        for name in re.findall(r"const (?:int|long) (\w+) = ", body):
            assert words(body).count(name) > 1, name


def layout(*extents: int, padding: int = 0) -> Extents:
    return Extents(tuple(map(Constant, extents)), padding)


@pytest.mark.parametrize("one", [layout(4, 8), layout(2, 4, 8, padding=1), layout(5), layout()])
def test_no_two_elements_lie_in_one_place(one: Extents) -> None:
    indices = product(*(range(evaluate(extent, {})) for extent in one.extents))
    places = [evaluate(one.address([Constant(k) for k in index]), {}) for index in indices]
    assert len(set(places)) == len(places)
    assert one.elements is not None
    assert all(0 <= place < one.elements for place in places)
