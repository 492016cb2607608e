"""A launch plan survives being written and read; a damaged one is refused in words."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.program import (
    INTEGERS,
    Apply,
    Argument,
    Assumption,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    IntExpr,
    KernelCode,
    Launch,
    Name,
    OperationCount,
    Operator,
    Parameter,
    Program,
    Temporary,
    Work,
    load_program,
    program_from_dict,
    program_to_dict,
    save_program,
)
from tests.plans import plan
from tests.refusals import refusing

WORDS = st.sampled_from(("N", "i", "kernel_gemm", "A", "double"))
EXPRESSIONS: st.SearchStrategy[IntExpr] = st.recursive(
    st.one_of(st.builds(Constant, st.integers()), st.builds(Name, WORDS)),
    lambda inner: st.builds(
        Apply, st.sampled_from(Operator), st.lists(inner, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=5,
)
LAUNCHES = st.builds(Launch, kernel=WORDS, grid=st.tuples(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS))


def _nested(inner: st.SearchStrategy[HostStep]) -> st.SearchStrategy[HostStep]:
    body = st.lists(inner, max_size=2).map(tuple)
    loops = st.builds(HostLoop, counter=WORDS, lower=EXPRESSIONS, upper=EXPRESSIONS, body=body)
    return st.one_of(loops, st.builds(HostIf, condition=EXPRESSIONS, body=body))


STEPS: st.SearchStrategy[HostStep] = st.recursive(LAUNCHES, _nested, max_leaves=4)


def some(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return a few of a kind, with fields by their types: integer expressions are given."""
    return st.lists(st.builds(kind, **fields), max_size=2).map(tuple)


SHAPES = st.lists(EXPRESSIONS, max_size=2).map(tuple)
WORK = st.builds(
    Work,
    operations=st.none() | some(OperationCount, count=EXPRESSIONS),
    read_bytes=st.none() | EXPRESSIONS,
    written_bytes=st.none() | EXPRESSIONS,
)
ENTRIES = some(
    Entry,
    arguments=some(Argument, shape=SHAPES),
    temporaries=some(Temporary, shape=SHAPES),
    assumptions=some(Assumption, condition=EXPRESSIONS),
    body=st.lists(STEPS, max_size=2).map(tuple),
    work=st.none() | WORK,
)
PROGRAMS = st.builds(
    Program,
    file=st.just("p.cu"),
    parameters=some(Parameter, tile=st.integers(0, 400)),
    kernels=some(KernelCode, grid_strides=st.sampled_from(((), ("x", "z")))),
    entries=ENTRIES,
)


@settings(max_examples=60, deadline=None)
@given(program=PROGRAMS)
def test_a_plan_is_the_same_after_writing_and_reading_it_as_json(program: Program) -> None:
    document = json.loads(json.dumps(program_to_dict(program)))
    assert "text" not in document
    assert program_from_dict(document, program.text) == program


def document_of_a_plan() -> dict[str, Any]:
    size = Parameter(name="N", kind="macro", default=7, tile=16)
    return program_to_dict(plan("p", "// text\n", parameters=(size,)))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", 3),
        ("index_bits", 16),
        ("parameters", [{"name": "N"}]),
        ("schema_version", 99),
    ],
)
def test_a_damaged_plan_or_one_of_another_version_is_refused(field: str, value: object) -> None:
    with refusing("EATSS-V001" if field == "schema_version" else "EATSS-V002"):
        program_from_dict({**document_of_a_plan(), field: value}, "")


def test_a_program_is_the_same_after_saving_and_loading_it(tmp_path: Path) -> None:
    program = program_from_dict(document_of_a_plan(), "// text\n")
    save_program(program, tmp_path)
    assert load_program(tmp_path) == program


def test_a_folder_without_a_program_is_refused(tmp_path: Path) -> None:
    with refusing("EATSS-V003"):
        load_program(tmp_path)


GEMM = Path(__file__).resolve().parents[1] / "measurement" / "programs" / "gemm"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("gemm.cu", "gemm.c", "plan.json"):
        (tmp_path / name).write_bytes((GEMM / name).read_bytes())
    return tmp_path


@pytest.mark.parametrize("place", ["../gemm.cu", "/etc/passwd", "gemm.c\0", ""])
@pytest.mark.parametrize("of", ["file", "original"])
def test_a_file_elsewhere_is_no_part_of_a_program(folder: Path, of: str, place: str) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    (plan["original"] if of == "original" else plan)["file"] = place
    (folder / "plan.json").write_text(json.dumps(plan))
    with pytest.raises(InputError, match="is no place in its folder"):
        load_program(folder)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"file": "gemm.cu"}', '{"a":' * 100_000])
def test_what_is_no_plan_at_all(folder: Path, text: str) -> None:
    (folder / "plan.json").write_text(text)
    with pytest.raises(InputError, match=r"EATSS-V00[12]"):
        load_program(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "plan.json").unlink()
    os.mkfifo(folder / "plan.json")
    with pytest.raises(InputError, match="no regular file"):
        load_program(folder)


@pytest.mark.parametrize("value", [None, 1.5, [], ["+"]], ids=repr)
def test_any_part_replaced_by_anything_loads_or_is_refused(folder: Path, value: object) -> None:
    plan = json.loads((folder / "plan.json").read_text())
    places: list[tuple[Any, Any]] = []
    todo: list[Any] = [plan]
    while todo:
        at = todo.pop()
        for key in list(at) if isinstance(at, dict) else range(len(at)):
            places.append((at, key))
            todo += [at[key]] if isinstance(at[key], dict | list) else []
    loaded = 0
    for at, key in places[::31]:
        kept, at[key] = at[key], value
        (folder / "plan.json").write_text(json.dumps(plan))
        at[key] = kept
        try:
            load_program(folder)
        except InputError:
            continue
        loaded += 1
    assert loaded < len(places[::31])


def leaves(hint: Any) -> Iterator[Any]:
    inner = get_args(hint)
    yield from (hint,) if not inner else (leaf for one in inner for leaf in leaves(one))


def test_integers_are_found_in_every_field_that_may_hold_some() -> None:
    """Fields are found by the words of their annotations: another name would hide them."""
    whole = {*get_args(IntExpr), *INTEGERS.through}
    for kind in (*INTEGERS.through, Entry, Assumption):
        hints = get_type_hints(kind)
        for field in fields(kind):
            held = whole.intersection(leaves(hints[field.name]))
            words = r"\b(IntExpr|HostStep|OperationCount)s?\b|\bWork\b"
            assert not held or re.search(words, str(field.type)), (kind, field.name)
