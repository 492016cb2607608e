"""What others add to eatss: registries of named things, filled by packages and by programs.

    from eatss.measurement.meters import METERS

    METERS.register("watts", open_watts)

A package that is installed adds to a registry by an entry point of the registry's group, and
its users write nothing::

    [project.entry-points."eatss.meters"]
    watts = "my_package.meters:open_watts"

Entry points are read when a name is asked for that is not built in, or all names are. Without
either, ``my_package.meters:open_watts`` is a name itself, also where another process needs it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from pkgutil import resolve_name
from typing import Generic, TypeVar

from eatss.base.diagnostics import did_you_mean, input_error
from eatss.base.frozen import Names, distinct

T = TypeVar("T")


class Registry(Generic[T]):
    """Things of one kind by name: those of eatss, of installed packages and of this program.

    Args:
        group: the group of entry points, ``"eatss.meters"``.
        kind: what one of them is called in messages, ``"meter"``.
        built_in: those of eatss, in the order in which they are listed.
        of: the type that a thing must be of; ``None`` where it is a function.
    """

    def __init__(
        self, group: str, kind: str, built_in: Mapping[str, T], *, of: type[T] | None = None
    ) -> None:
        self.group = group
        self.kind = kind
        self._of = of
        self._built_in = frozenset(built_in)
        self._things = {name: self._checked(name, one, "eatss") for name, one in built_in.items()}

    def register(self, name: str, thing: T) -> None:
        """Add a thing under a name that nothing has yet.

        Raises:
            InputError: ``EATSS-X003``, the name is taken, or it is not of the kind.
        """
        if name in self.names():
            raise input_error(
                "EATSS-X003",
                f"the {self.kind} '{name}' is there already",
                hint="register it under another name",
            )
        self._things[name] = self._checked(name, thing, "this program")

    def remove(self, name: str) -> None:
        """Forget a thing that :meth:`register` added; nothing happens where there is none."""
        self._things.pop(name, None)

    def names(self) -> Names:
        """Return all names: those of eatss, those registered, those of packages."""
        return distinct((*self._things, *sorted(self._offered())))

    def get(self, name: str) -> T:
        """Return the thing of a name, or of ``module:name``, which any process can import.

        Raises:
            InputError: ``EATSS-X005`` there is none, ``EATSS-X003`` a package's cannot be loaded.
        """
        if name not in self._things:
            offered = self._offered()
            where = offered.get(name, name)
            if ":" not in where:
                raise input_error(
                    "EATSS-X005",
                    f"there is no {self.kind} '{name}'",
                    hint=did_you_mean(name, self.names(), "choose one of"),
                )
            try:
                thing = resolve_name(where)
            except Exception as error:  # code of another package: anything may come of it
                by_package = name in offered
                raise input_error(
                    "EATSS-X003",
                    f"the {self.kind} '{name}'{f' ({where})' if by_package else ''} cannot be "
                    f"loaded: {type(error).__name__}: {error}",
                    hint="mend or remove the package that offers it"
                    if by_package
                    else f"name what Python can import, or one of: {', '.join(self.names())}",
                ) from error
            self._things[name] = self._checked(name, thing, where)
        return self._things[name]

    def version(self, name: str) -> str | None:
        """Return whose version tells a thing from others that had its name; ``None``: nothing does.

        Results of what others offer are therefore not kept.
        """
        return "eatss" if name in self._built_in else None

    def _offered(self) -> Mapping[str, str]:
        return _entry_points(self.group, tuple(sys.path))

    def _checked(self, name: str, thing: T, where: str) -> T:
        fits = callable(thing) if self._of is None else isinstance(thing, self._of)
        if not fits:
            wanted = "a function" if self._of is None else self._of.__name__
            raise input_error(
                "EATSS-X003",
                f"the {self.kind} '{name}' of {where} is of the type {type(thing).__name__}, "
                f"not {wanted}",
            )
        return thing


@lru_cache(maxsize=64)
def _entry_points(group: str, folders: Names) -> Mapping[str, str]:
    """Return where the things of packages in some folders stand, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - what is built in needs none

    del folders  # those of ``sys.path``
    return {one.name: one.value for one in entry_points(group=group)}
