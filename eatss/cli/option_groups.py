"""Options that commands share, declared once: a group is a function from options to a noun."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any, get_type_hints


def takes(**groups: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command, or a group, the options of groups.

    Where the function has a parameter named after a group, the command line has the options of
    that group, in their order, and the function gets what the group makes of them.

    Args:
        groups: by the name of the parameter, a function whose parameters are options.
    """

    def with_options(function: Callable[..., Any]) -> Callable[..., Any]:
        members = {name: parameters_of(group) for name, group in groups.items()}

        @wraps(function)
        def run(**options: Any) -> Any:
            made = {
                name: groups[name](**{one.name: options.pop(one.name) for one in own})
                for name, own in members.items()
            }
            return function(**made, **options)

        found: list[inspect.Parameter] = []
        for parameter in parameters_of(function, without=tuple(groups)):
            found += members.get(parameter.name, (parameter,))
        run.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in found}
        return run

    return with_options


def parameters_of(
    function: Callable[..., Any], without: tuple[str, ...] = ()
) -> tuple[inspect.Parameter, ...]:
    """Return the parameters of a function as keywords, their annotations as objects.

    Args:
        function: a command, or a group of options.
        without: parameters whose annotations are left as they are.
    """
    parameters = inspect.signature(function).parameters.values()
    annotations = {one.name: one.annotation for one in parameters if one.name not in without}
    hints = get_type_hints(
        SimpleNamespace(__annotations__=annotations),
        globalns=inspect.unwrap(function).__globals__,
        include_extras=True,
    )
    return tuple(
        one.replace(annotation=hints.get(one.name, one.annotation), kind=one.KEYWORD_ONLY)
        for one in parameters
    )
