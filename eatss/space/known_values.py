"""Decisions whose values are names, such as ``model``: a value that nobody knows is told here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import get_args

from eatss.diagnostics import InputError, did_you_mean
from eatss.model.options import ModelName, VolumeName
from eatss.point import Value
from eatss.space.bound import BoundSpace
from eatss.space.dimensions import Dimension, ListedDimension
from eatss.space.evaluation import evaluate_one
from eatss.space.expressions import ExpressionFault, expression_finding, origin_of
from eatss.space.parsed import ParsedSpace, parsed_space


def check_known_values(bound: BoundSpace) -> None:
    """Refuse a space of a program that gives a decision a value which it does not have.

    Values that an iterator lists are looked at, and those of ``[variant]`` that follow from
    constants and one such iterator. Where a space is only counted, an iterator may be called
    ``volume`` and mean anything.

    Raises:
        InputError: ``EATSS-S023``, a finding for each such value, with its place.
    """
    parsed = parsed_space(bound.space)
    faults = (*_listed(parsed), *_mapped(parsed, bound.constants))
    if faults:
        raise InputError(*(expression_finding(one, origin_of(bound.space)) for one in faults))


def _known() -> Mapping[str, Sequence[str]]:
    from eatss.model.objectives import OBJECTIVES  # noqa: PLC0415 - what packages add is looked up

    return {
        "model": get_args(ModelName),
        "objective": OBJECTIVES.names(),
        "volume": get_args(VolumeName),
    }


def _listed(parsed: ParsedSpace) -> Iterator[ExpressionFault]:
    known = _known()
    for dimension in parsed.dimensions:
        if dimension.name not in known or dimension.name in parsed.variant:
            continue
        path = ("iterators", dimension.name)
        if not isinstance(dimension, ListedDimension):
            yield _fault(dimension.name, "a number", known[dimension.name], path)
            continue
        for value in dimension.values:
            if value not in known[dimension.name]:
                text = f'"{value}"' if isinstance(value, str) else ""
                yield _fault(dimension.name, repr(value), known[dimension.name], path, text)


def _mapped(parsed: ParsedSpace, constants: Mapping[str, Value]) -> Iterator[ExpressionFault]:
    iterators: Mapping[str, Dimension] = {one.name: one for one in parsed.dimensions}
    for name, names in _known().items():
        expression = parsed.variant.get(name)
        if expression is None:
            continue
        over = [iterators[one] for one in expression.names if one in iterators]
        points: list[Mapping[str, Value]] = [{}]
        if over:
            (first, *others) = over
            if others or not isinstance(first, ListedDimension):
                continue  # a point of the space tells
            points = [{first.name: value} for value in first.values]
        for point in points:
            with suppress(ExpressionFault):  # a filter may leave the point out
                value = evaluate_one(expression, {**constants, **point})
                if value not in names:
                    path = ("variant", name)
                    yield _fault(name, repr(value), names, path, expression.text)


def _fault(
    name: str, value: str, known: Sequence[str], path: tuple[str, ...], text: str = ""
) -> ExpressionFault:
    return ExpressionFault(
        "EATSS-S023",
        f"{name} is {value}, which it cannot be",
        end=len(text),
        hint=did_you_mean(value.strip("'"), known, "choose one of"),
        text=text,
        path=path,
    )
