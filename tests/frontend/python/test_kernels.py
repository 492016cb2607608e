"""Kernels said in Python are the regions that they are in C."""

from __future__ import annotations

from pathlib import Path

import islpy as isl
import pytest

from eatss.base.diagnostics import SourceSpan
from eatss.base.shipped import data_directory
from eatss.frontend.parse import parse_file
from eatss.polyhedral.dependences import compute_dependences
from eatss.polyhedral.scop import Scop
from eatss.session.session import Session
from tests.frontend.python.kernels_in_python import IN_PYTHON


def positive(scop: Scop, piece: isl.UnionMap) -> isl.UnionMap:
    """Restrict a relation to sizes that are not zero, which C's numbers are not."""
    sizes = " and ".join(f"{name} >= 1" for name in scop.parameters)
    names = ", ".join(scop.parameters)
    known = isl.Set(f"[{names}] -> {{ : {sizes} }}", scop.isl_context)
    return piece.intersect_params(known)


def relations(scop: Scop) -> dict[str, str]:
    """Return all relations of a region as texts, statements by number."""
    numbers = {statement.name: f"S{i}" for i, statement in enumerate(scop.statements)}
    found: dict[str, isl.UnionMap] = {}
    for statement in scop.statements:
        name = numbers[statement.name]
        found[f"{name} order"] = isl.UnionMap.from_map(statement.schedule)
        for i, access in enumerate(statement.accesses):
            found[f"{name} {i} {access.kind.value} {access.array}"] = isl.UnionMap.from_map(
                access.relation
            )
    dependences = compute_dependences(scop)
    for kind in ("flow", "anti", "output"):
        found[kind] = getattr(dependences, kind)
    texts = {}
    for key, relation in found.items():
        text = str(positive(scop, relation))
        for old, new in sorted(numbers.items(), reverse=True):
            text = text.replace(f"{old}[", f"{new}_[")
        texts[key] = text
    return texts


def assert_same(one: Scop, other: Scop) -> None:
    assert set(one.parameters) == set(other.parameters)
    mine, theirs = relations(one), relations(other)
    assert set(mine) == set(theirs)
    for key, text in mine.items():
        context = isl.Context()
        a, b = (isl.UnionMap(piece, context) for piece in (text, theirs[key]))
        assert a.is_equal(b), f"{key}\n{text}\n{theirs[key]}"


@pytest.mark.parametrize("kernel", [*IN_PYTHON][::3])
def test_a_kernel_is_the_same_region_in_python_and_in_c(kernel: str) -> None:
    in_c = Session(data_directory("kernels") / f"{kernel}.c").parsed_symbolic.scops[0]
    in_python = Session(IN_PYTHON[kernel]).parsed_symbolic.scops[0]
    assert_same(in_python, in_c)


def test_another_region_is_not_the_same() -> None:
    in_c = Session(data_directory("kernels") / "mvt.c").parsed_symbolic.scops[0]
    other = parse_file(
        Session(IN_PYTHON["mvt"]).c_source.replace("A[j][i]", "A[i][j]")  # type: ignore[union-attr]
    ).scops[0]
    with pytest.raises(AssertionError, match="read A"):
        assert_same(other, in_c)


@pytest.mark.parametrize("kernel", IN_PYTHON)
def test_every_place_of_a_region_is_a_place_in_python(kernel: str) -> None:
    source = IN_PYTHON[kernel]
    lines = Path(source.file).read_text(encoding="utf-8").splitlines()
    scop = Session(source).parsed.scops[0]

    def text(span: SourceSpan) -> str:
        assert span.file == source.file
        assert span.line == span.end_line
        return lines[span.line - 1][span.column - 1 : span.end_column - 1]

    assert lines[scop.span.line - 1].startswith(f"def {source.name}(")
    for statement in scop.statements:
        assert statement.span.file == source.file
        assert lines[statement.span.line - 1].lstrip().startswith(statement.accesses[0].array)
        for access in statement.accesses:
            written = text(access.span).replace("][", ", ")
            assert written == access.text.replace("][", ", ")
