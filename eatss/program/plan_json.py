"""The launch plan as JSON, and a program as a folder of files."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path, PurePath
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from eatss.diagnostics import InputError, input_error
from eatss.files import read_regular
from eatss.program import plan as nouns
from eatss.program.checks import check_program
from eatss.program.expression import Apply, Constant, IntExpr, Name, Operator

PLAN_FILE = "plan.json"
_MOST_BYTES = 64 * 2**20

_STEPS: Mapping[str, type] = {
    "launch": nouns.Launch,
    "loop": nouns.HostLoop,
    "if": nouns.HostIf,
}
_STEP_NAMES = {kind: name for name, kind in _STEPS.items()}


def program_to_dict(program: nouns.Program) -> dict[str, Any]:
    """Return the launch plan as plain JSON types; the text is not part of it."""
    plain: dict[str, Any] = _encode(program)
    del plain["text"]
    return {"schema_version": plain.pop("schema_version"), **plain}


def program_from_dict(document: Mapping[str, Any], text: str) -> nouns.Program:
    """Read what :func:`program_to_dict` wrote.

    Raises:
        InputError: the document is not of this schema.
    """
    version = document.get("schema_version")
    if version != nouns.SCHEMA_VERSION:
        raise input_error(
            "EATSS-V001",
            f"the launch plan has schema version {version}, not {nouns.SCHEMA_VERSION}",
            hint="generate the program again with this version of eatss",
        )
    try:
        program = _decode(nouns.Program, {**document, "text": text})
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged(str(error)) from None
    except RecursionError:
        raise _damaged("it is nested too deeply") from None
    assert isinstance(program, nouns.Program)
    return program


def _damaged(reason: str) -> InputError:
    return input_error(
        "EATSS-V002",
        f"the launch plan is damaged: {reason}",
        hint="generate the program again",
    )


def save_program(program: nouns.Program, directory: Path) -> None:
    """Write text and launch plan into an existing folder."""
    (directory / program.file).write_text(program.text, encoding="utf-8")
    plan = json.dumps(program_to_dict(program), indent=2)
    (directory / PLAN_FILE).write_text(plan + "\n", encoding="utf-8")


def load_program(directory: Path) -> nouns.Program:
    """Read the program in a folder.

    Raises:
        InputError: there is none, or it is damaged.
    """
    path = directory / PLAN_FILE
    try:
        document = json.loads(read_regular(path, _MOST_BYTES))
        text = read_regular(directory / _file_name(document), _MOST_BYTES).decode()
    except FileNotFoundError as error:
        raise input_error(
            "EATSS-V003",
            f"'{directory}' holds no generated program: there is no '{error.filename}'",
            hint="make one with: eatss codegen FILE.c --gpu NAME -o DIR",
        ) from None
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        place = (error.filename if isinstance(error, OSError) else None) or path
        raise input_error(
            "EATSS-V002", f"'{place}' cannot be read: {reason}", hint="generate the program again"
        ) from None
    program = program_from_dict(document, text)
    try:
        check_program(program)
    except ValueError as error:
        raise _damaged(str(error)) from None
    return program


def _file_name(document: Any) -> str:
    """Return what the text's file is called, which is in the folder of the plan."""
    name = document["file"]
    if not isinstance(name, str) or PurePath(name).name != name:
        raise ValueError(f"{name!r} is no name of a file beside it")
    return name


def _encode(value: Any) -> Any:
    if isinstance(value, Constant):
        return value.value
    if isinstance(value, Name):
        return value.name
    if isinstance(value, Apply):
        return [value.operator.value, *(_encode(operand) for operand in value.operands)]
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if is_dataclass(value):
        plain = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        name = _STEP_NAMES.get(type(value))
        return plain if name is None else {"kind": name, **plain}
    return value


def _decode(kind: Any, value: Any) -> Any:
    """Return ``value``, plain JSON types, as ``kind``, a type hint of a noun."""
    if kind == IntExpr:
        return _decode_expression(value)
    if kind == nouns.HostStep:
        return _decode_noun(_STEPS[value["kind"]], value)
    reader = _READERS.get(get_origin(kind))
    if reader is not None:
        return reader(get_args(kind), value)
    return _decode_noun(kind, value) if is_dataclass(kind) else _decode_plain(kind, value)


def _decode_tuple(parts: tuple[Any, ...], value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{value!r} is no list")
    if len(parts) == 2 and parts[1] is Ellipsis:
        return tuple(_decode(parts[0], item) for item in value)
    return tuple(_decode(part, item) for part, item in zip(parts, value, strict=True))


def _decode_document(parts: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """Return a JSON object as it is: its own reader knows what is in it."""
    del parts
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
    return value


def _decode_choice(choices: tuple[Any, ...], value: Any) -> Any:
    if value not in choices:
        raise ValueError(f"{value!r} is none of {choices}")
    return value


def _decode_optional(kinds: tuple[Any, ...], value: Any) -> Any:
    """Return ``value`` as the one kind beside ``None``, which may be an expression."""
    others = tuple(kind for kind in kinds if kind is not types.NoneType)
    return None if value is None else _decode(Union[others], value)  # noqa: UP007


_READERS: Mapping[Any, Callable[[tuple[Any, ...], Any], Any]] = {
    tuple: _decode_tuple,
    dict: _decode_document,
    Literal: _decode_choice,
    Union: _decode_optional,
    types.UnionType: _decode_optional,
}


def _decode_plain(kind: Any, value: Any) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _decode_noun(kind: Any, value: Any) -> Any:
    hints = get_type_hints(kind)
    given = {field.name: value[field.name] for field in fields(kind) if _is_given(field, value)}
    return kind(**{name: _decode(hints[name], item) for name, item in given.items()})


def _is_given(field: Field[Any], value: Any) -> bool:
    """Return whether a field has a value; one with a default may be absent."""
    return field.default is MISSING or field.name in value


def _decode_expression(value: Any) -> IntExpr:
    if isinstance(value, bool):
        raise TypeError(f"{value!r} is no expression")
    if isinstance(value, int):
        return Constant(value)
    if isinstance(value, str):
        return Name(value)
    operator, *operands = value
    return Apply(Operator(operator), tuple(_decode_expression(operand) for operand in operands))
