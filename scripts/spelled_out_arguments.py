"""An extension of Griffe: functions have the arguments, and fields the types, that callers see."""

from __future__ import annotations

import inspect
from pkgutil import resolve_name
from typing import Any

import griffe


class SpelledOutArguments(griffe.Extension):
    """Takes signature and documentation of functions of ``spelled_out`` from these themselves.

    Types of fields stand without what the command line has of them.
    """

    def on_attribute_instance(self, *, attr: griffe.Attribute, **others: Any) -> None:
        """Show ``int`` for ``Annotated[int, option(...)]``."""
        del others
        match attr.annotation:
            case griffe.ExprSubscript(
                left=griffe.ExprName(name="Annotated"), slice=griffe.ExprTuple(elements=[kind, *_])
            ):
                attr.annotation = kind

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
