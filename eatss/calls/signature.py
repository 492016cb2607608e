"""What a callable takes: the arguments of all regions of a program, each once, by their C names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from eatss.diagnostics import input_error
from eatss.program import Argument, Interface, IntExpr, names_in
from eatss.verify.data import dtype_of

Role: TypeAlias = Literal["array", "cell", "scalar", "size"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallArgument:
    """An argument of a callable.

    ``name`` is that of the C source. An ``array`` has ``shape`` in the program's sizes, a ``cell``
    is an array of one element, a ``scalar`` a number. ``others`` are the shapes that other regions
    see, which have to hold as well. A ``size`` is a whole number called ``size`` in shapes;
    ``default`` is its value in the source, ``None`` if it has none there. What no region reads or
    writes is not ``used`` and may be left out.
    """

    name: str
    role: Role
    dtype: np.dtype[Any]
    shape: tuple[IntExpr, ...] = ()
    others: tuple[tuple[IntExpr, ...], ...] = ()
    reads: bool = True
    writes: bool = False
    size: str = ""
    default: int | None = None
    used: bool = True

    def __str__(self) -> str:
        if self.role == "size":
            return self.name if self.default is None else f"{self.name}={self.default}"
        return self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSignature:
    """The arguments of a callable: the function's in their order, then what it reaches besides.

    ``names`` says, for each region, what its launch plan calls the argument of a name.
    """

    arguments: tuple[CallArgument, ...]
    names: tuple[tuple[tuple[str, str], ...], ...]

    def __getitem__(self, name: str) -> CallArgument:
        return next(argument for argument in self.arguments if argument.name == name)

    def __str__(self) -> str:
        positional = [str(one) for one in self.arguments if one.role != "size" or not one.default]
        sizes = [str(one) for one in self.arguments if one.role == "size" and one.default]
        return ", ".join([*positional, *(["*", *sizes] if sizes else [])])

    @property
    def shaping(self) -> frozenset[str]:
        """The sizes that shapes of arrays are made of, as shapes call them."""
        return frozenset(
            name
            for one in self.arguments
            for shape in (one.shape, *one.others)
            for extent in shape
            for name in names_in(extent)
        )

    @property
    def written(self) -> tuple[str, ...]:
        """The names of the arrays and cells that are written."""
        return tuple(one.name for one in self.of_role("array", "cell") if one.writes)

    def of_role(self, *roles: Role) -> tuple[CallArgument, ...]:
        """Return the arguments of some roles that are used."""
        return tuple(one for one in self.arguments if one.role in roles and one.used)


def signature_of(interface: Interface) -> CallSignature:
    """Return what a callable takes.

    Raises:
        InputError: ``EATSS-J014``, two functions call different things by one name.
    """
    found: dict[str, CallArgument] = {}
    names: list[tuple[tuple[str, str], ...]] = []
    defaults = {parameter.name: parameter.default for parameter in interface.parameters}
    for entry in interface.entries:
        pairs = []
        ordered = sorted(entry.arguments, key=lambda one: (one.position is None, one.position or 0))
        for argument in ordered:
            mine = _argument(argument, defaults)
            known = found.get(mine.name)
            if known is not None and not _alike(known, mine):
                raise input_error(
                    "EATSS-J014",
                    f"'{mine.name}' is {_described(known)} in one region and "
                    f"{_described(mine)} in '{entry.function}'",
                    hint=f"make a callable of one function, function='{entry.function}'",
                )
            found[mine.name] = mine if known is None else _joined(known, mine)
            pairs.append((mine.name, argument.name))
        names.append(tuple(pairs))
    passed = {argument.size for argument in found.values()}
    for parameter in interface.parameters:
        if parameter.name not in passed:
            found[parameter.name] = CallArgument(
                name=parameter.name,
                role="size",
                dtype=np.dtype(np.int32),
                size=parameter.name,
                default=parameter.default,
            )
    return CallSignature(arguments=tuple(found.values()), names=tuple(names))


def sizes_of(signature: CallSignature) -> Iterator[CallArgument]:
    """Yield the sizes."""
    return (one for one in signature.arguments if one.role == "size")


def _argument(argument: Argument, defaults: dict[str, int | None]) -> CallArgument:
    dtype, name = dtype_of(argument), argument.source_name
    name = name if name.isidentifier() else argument.name
    if argument.role == "parameter":
        return CallArgument(
            name=name,
            role="size",
            dtype=dtype,
            size=argument.name,
            default=defaults.get(argument.name),
        )
    return CallArgument(
        name=name,
        role=argument.role,
        dtype=dtype,
        shape=argument.shape,
        reads=argument.reads,
        writes=argument.writes,
        used=argument.reads or argument.writes,
    )


def _alike(one: CallArgument, other: CallArgument) -> bool:
    if not (one.used and other.used):
        return True
    same = (one.role, one.dtype, one.size) == (other.role, other.dtype, other.size)
    return same and len(one.shape) == len(other.shape)


def _joined(one: CallArgument, other: CallArgument) -> CallArgument:
    if not one.used:
        return other
    if not other.used:
        return one
    others = one.others
    if other.shape not in (one.shape, *others):
        others = (*others, other.shape)
    return replace(
        one, others=others, reads=one.reads or other.reads, writes=one.writes or other.writes
    )


def _described(one: CallArgument) -> str:
    dimensions = "1 dimension" if len(one.shape) == 1 else f"{len(one.shape)} dimensions"
    kind = {"array": f"an array of {dimensions}", "cell": "a scalar it writes"}
    return f"{kind.get(one.role, 'a ' + one.role)} of {one.dtype.name}"
