"""A plan that was tampered with is refused in words, whatever was changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from eatss.program import load_program

GEMM = Path(__file__).resolve().parents[1] / "measurement" / "programs" / "gemm"
PLAN = (GEMM / "plan.json").read_text()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "gemm.cu").write_bytes((GEMM / "gemm.cu").read_bytes())
    (tmp_path / "gemm.c").write_bytes((GEMM / "gemm.c").read_bytes())
    return tmp_path


def refusal(folder: Path, plan: str) -> str:
    (folder / "plan.json").write_text(plan)
    with pytest.raises(InputError) as caught:
        load_program(folder)
    assert caught.value.code in ("EATSS-V001", "EATSS-V002", "EATSS-V003")
    assert caught.value.diagnostics[0].hint
    return caught.value.diagnostics[0].message


def changed(path: str, value: object) -> str:
    plan = json.loads(PLAN)
    *way, last = path.split(".")
    at: Any = plan
    for key in way:
        at = at[int(key) if isinstance(at, list) else key]
    at[int(last) if isinstance(at, list) else last] = value
    return json.dumps(plan)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("file", "../gemm.cu", "is no name of a file beside it"),
        ("file", "/etc/passwd", "is no name of a file beside it"),
        ("file", "gemm.c\0", "null"),
        ("original.file", "/etc/passwd", "'/etc/passwd' is no place in its folder"),
        ("original.include_dirs", ["include/../.."], "is no place in its folder"),
        ("parameters.0.name", "N; f()", "has a name that C does not allow"),
        ("entries.0.launcher", "-x", "has a name that C does not allow"),
        ("entries.0.launcher", "absent", "the text has no function 'absent'"),
        ("entries.0.function", "f(1)", "has a name that C does not allow"),
        ("kernels.0.name", "absent", "the text has no kernel 'absent'"),
        ("kernels.0.block", [0, 1, 1], "has a count that is none"),
        ("kernels.0.arguments", ["nothing"], "nothing is called 'nothing'"),
        ("entries.0.arguments.0.shape", ["M"], "nothing is called 'M' in an expression"),
        ("entries.0.assumptions.0.condition", ["+"], "is given 0 operands"),
        ("entries.0.assumptions.0.condition", ["<=", "NI"], "is given 1 operands"),
        ("entries.0.assumptions.0.condition", ["floordiv", "NI", 0], "is by 0"),
        ("entries.0.assumptions.0.condition", ["power", "NI", 2], "power"),
        ("entries.0.work.read_bytes", ["%", 5, -1], "is by -1"),
        ("entries.0.body", [{"kind": "launch", "kernel": "k", "grid": [1, 1, 1]}], "no kernel 'k'"),
        ("entries.0.body", [{"kind": "call"}], "call"),
    ],
)
def test_parts_that_do_not_belong_together(
    folder: Path, path: str, value: object, said: str
) -> None:
    assert said in refusal(folder, changed(path, value))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[1]",
        '"x"',
        '{"file": "gemm.cu"}',
        '{"file": ' + "9" * 6000 + "}",
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"file": "' + "x" * 5000 + '"}',
        '{"file": "\\ud800"}',
    ],
    ids=range(10),
)
def test_what_is_no_plan_at_all(folder: Path, text: str) -> None:
    refusal(folder, text)


def test_an_expression_that_is_nested_too_deeply(folder: Path) -> None:
    deep: object = "NI"
    for _ in range(600):
        deep = ["+", deep, 1]
    assert "nested too deeply" in refusal(
        folder, changed("entries.0.assumptions.0.condition", deep)
    )


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    (folder / "gemm.cu").unlink()
    os.mkfifo(folder / "gemm.cu")
    assert "no regular file" in refusal(folder, PLAN)
    (folder / "plan.json").unlink()
    os.mkfifo(folder / "plan.json")
    with pytest.raises(InputError, match="no regular file"):
        load_program(folder)


@pytest.mark.samples(4)
@pytest.mark.parametrize("value", [None, -1, 10**30, 1.5, "", "q", [], {}, True, ["+"]], ids=repr)
def test_any_part_replaced_by_anything_loads_or_is_refused(folder: Path, value: object) -> None:
    plan = json.loads(PLAN)
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
