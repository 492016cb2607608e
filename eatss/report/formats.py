r"""What ``eatss select`` can print: a registry of output formats, to which others may add.

A format is a function of :class:`Selected` that returns text with its last line break::

    from eatss.report.formats import FORMATS, Selected

    def names(found: Selected) -> str:
        return "".join(f"{one.name}: {one.tile_sizes}\n" for one in found.selection.kernels)

    FORMATS.register("names", names)

An installed package offers one by an entry point of the group ``eatss.formats``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from eatss.base.codec import json_text
from eatss.base.extensions import Registry
from eatss.base.frozen import frozen

if TYPE_CHECKING:
    from eatss.analysis.analyse import AnalysedProgram
    from eatss.cards import GpuProfile
    from eatss.choose.selection import Selection


@frozen
class Selected:
    """A selection with the program and the card that it is for; ``explain`` asks for reasons.

    ``analysed`` returns the program, which takes time where the selection was found before.
    """

    selection: Selection
    analysed: Callable[[], AnalysedProgram]
    profile: GpuProfile
    explain: bool = False

    @property
    def program(self) -> AnalysedProgram:
        """The program that the selection is for."""
        return self.analysed()


Format: TypeAlias = Callable[[Selected], str]


def _table(found: Selected) -> str:
    from eatss.report.selection import selection_table  # noqa: PLC0415 - Rich loads slowly

    return selection_table(found.selection, explain=found.explain)


def _json(found: Selected) -> str:
    return json_text(found.selection)


def _ppcg(found: Selected) -> str:
    return f"{found.selection.ppcg_sizes}\n"


def _ppcg_args(found: Selected) -> str:
    return "".join(f"{argument}\n" for argument in found.selection.ppcg_arguments)


FORMATS: Registry[Format] = Registry(
    "eatss.formats",
    "format",
    {
        "table": _table,
        "json": _json,
        "ppcg": _ppcg,
        "ppcg-args": _ppcg_args,
    },
)
"""Output formats of ``eatss select`` by name."""
