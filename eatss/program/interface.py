"""What callers of a program pass: sizes and arguments, known before the program is generated."""

from __future__ import annotations

from dataclasses import dataclass

from eatss.program.plan import Argument, Parameter, Program


@dataclass(frozen=True, slots=True, kw_only=True)
class InterfaceEntry:
    """A region as its callers see it: the C function around it and the arguments, in order."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """The sizes of a program, and the arguments of its regions in source order."""

    parameters: tuple[Parameter, ...]
    entries: tuple[InterfaceEntry, ...]
    schema_version: int = 1

    @classmethod
    def of(cls, program: Program) -> Interface:
        """Return that of a program."""
        return cls(
            parameters=program.parameters,
            entries=tuple(
                InterfaceEntry(function=entry.function, arguments=entry.arguments)
                for entry in program.entries
            ),
        )
