"""Decisions whose values are names, such as ``model``: a value that nobody knows is told here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import get_args

from eatss.base.diagnostics import InputError, did_you_mean
from eatss.choose.options import ModelName, VolumeName
from eatss.tune.point import Value
from eatss.tune.space.bound import BoundSpace
from eatss.tune.space.dimensions import Dimension, ListedDimension
from eatss.tune.space.evaluation import evaluate_one
from eatss.tune.space.expressions import (
    Expression,
    ExpressionFault,
    Place,
    expression_finding,
    origin_of,
)
from eatss.tune.space.parsed import ParsedSpace, parsed_space


def check_known_values(bound: BoundSpace) -> None:
    """Refuse a space of a program that gives a decision a value which it does not have.

    Values that an iterator lists are looked at, and those of ``[variant]`` that follow from
    constants and one such iterator. Where a space is only counted, an iterator may be called
    ``volume`` and mean anything.

    Raises:
        InputError: ``EATSS-S023``, a finding for each such value, with its place.
    """
    faults = tuple(_faults(parsed_space(bound.space), bound.constants))
    if faults:
        raise InputError(*(expression_finding(one, origin_of(bound.space)) for one in faults))


def _faults(parsed: ParsedSpace, constants: Mapping[str, Value]) -> Iterator[ExpressionFault]:
    from eatss.choose.objectives import OBJECTIVES  # noqa: PLC0415 - what packages add is looked up

    every: Mapping[str, Sequence[str]] = {
        "model": get_args(ModelName),
        "objective": OBJECTIVES.names(),
        "volume": get_args(VolumeName),
    }
    iterators = {one.name: one for one in parsed.dimensions}
    for name, one in iterators.items():
        if name in every and name not in parsed.variant:
            yield from _listed(one, every[name])
    for name, known in every.items():
        if name in parsed.variant:
            yield from _mapped(name, parsed.variant[name], known, iterators, constants)


def _listed(dimension: Dimension, known: Sequence[str]) -> Iterator[ExpressionFault]:
    path = ("iterators", dimension.name)
    if not isinstance(dimension, ListedDimension):
        yield _fault("a number", known, path)
        return
    for value in dimension.values:
        if value not in known:
            yield _fault(repr(value), known, path, f'"{value}"' if isinstance(value, str) else "")


def _mapped(
    name: str,
    expression: Expression,
    known: Sequence[str],
    iterators: Mapping[str, Dimension],
    constants: Mapping[str, Value],
) -> Iterator[ExpressionFault]:
    points: list[Mapping[str, Value]] = [{}]
    over = [iterators[one] for one in expression.names if one in iterators]
    if over:
        (first, *others) = over
        if others or not isinstance(first, ListedDimension):
            return  # a point of the space tells
        points = [{first.name: value} for value in first.values]
    for point in points:
        with suppress(ExpressionFault):  # a filter may leave the point out
            value = evaluate_one(expression, {**constants, **point})
            if value not in known:
                yield _fault(repr(value), known, ("variant", name), expression.text)


def _fault(value: str, known: Sequence[str], path: Place, text: str = "") -> ExpressionFault:
    return ExpressionFault(
        "EATSS-S023",
        f"{path[-1]} is {value}, which it cannot be",
        end=len(text),
        hint=did_you_mean(value.strip("'"), known, "choose one of"),
        text=text,
        path=path,
    )
