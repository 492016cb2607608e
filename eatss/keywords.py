"""Keywords that functions share, declared once as the fields of a noun.

A function that takes ``**reading: Unpack[ReadingKeywords]`` is checked by types; what
:func:`keywords_of` makes of it also shows them, each with its default and its description.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from functools import wraps
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


def taken(noun: type[T], keywords: Mapping[str, Any], **others: Any) -> T:
    """Return a noun made of those keywords that are fields of it, and of others."""
    names = {field.name for field in fields(noun)}  # type: ignore[arg-type]
    return noun(**{name: keywords[name] for name in keywords if name in names}, **others)


def changed(noun: object, *, but: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of those fields of a noun that say more than by default.

    Args:
        noun: a dataclass.
        but: fields to leave out.
    """
    values = {field: getattr(noun, field.name) for field in fields(noun)}  # type: ignore[arg-type]
    return tuple(
        field.name
        for field, value in values.items()
        if field.name not in but and value not in (field.default, (), [], {})
    )


def keywords_of(keywords: type, *nouns: type) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Spell out the keywords of a function in its signature and in its documentation.

    Args:
        keywords: the ``TypedDict`` that the function unpacks.
        nouns: dataclasses that have its keys as fields, described under ``Attributes:``.
    """
    known = {field.name: (field, noun) for noun in nouns for field in fields(noun)}
    shared = {name: known[name] for name in keywords.__annotations__}

    def spelled_out(function: Callable[P, T]) -> Callable[P, T]:
        old = inspect.signature(function)
        own = list(old.parameters.values())
        signature = old.replace(
            parameters=[*own[:-1], *(_parameter(field) for field, _ in shared.values())]
        )

        @wraps(function)
        def checked(*arguments: P.args, **options: P.kwargs) -> T:
            try:
                signature.bind(*arguments, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(*arguments, **options)

        lines = [_description(noun, name) for name, (_, noun) in shared.items()]
        before, mark, after = inspect.getdoc(function).partition(f"    **{own[-1].name}: ")  # type: ignore[union-attr]
        assert mark
        checked.__doc__ = before + "".join(lines) + after.partition("\n")[2]
        checked.__signature__ = signature  # type: ignore[attr-defined]
        return checked

    return spelled_out


def _parameter(field: Field[Any]) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(field.name, kind, default=field.default, annotation=field.type)


def _description(noun: type, name: str) -> str:
    """Return what the documentation of a noun says of a field, with its name."""
    lines = (inspect.getdoc(noun) or "").splitlines()
    start = lines.index(next(line for line in lines if line.startswith(f"    {name}: ")))
    end = next(
        at for at in range(start + 1, len(lines) + 1)
        if at == len(lines) or not lines[at].startswith(" " * 8)
    )  # fmt: skip
    return "".join(f"{line}\n" for line in lines[start:end])
