"""An extension of Griffe: functions of ``spelled_out`` have the arguments that callers see."""

from __future__ import annotations

import inspect
from pkgutil import resolve_name
from typing import Any

import griffe


class SpelledOutArguments(griffe.Extension):
    """Takes signature and documentation of such functions from the functions themselves."""

    def on_function(self, *, func: griffe.Function, **others: Any) -> None:
        """Replace what stands in the source by what a caller gives."""
        del others
        if not any("spelled_out" in str(one.value) for one in func.decorators):
            return
        function = resolve_name(func.path)
        func.parameters = griffe.Parameters(
            *(
                griffe.Parameter(
                    one.name,
                    annotation=str(one.annotation),
                    kind=griffe.ParameterKind[one.kind.name.lower()],
                    default=None if one.default is one.empty else repr(one.default),
                )
                for one in inspect.signature(function).parameters.values()
            )
        )
        func.docstring = griffe.Docstring(inspect.getdoc(function) or "", parent=func)
