"""What others add to eatss: registries of named things, filled by packages and by programs.

    from eatss.measurement.meters import METERS

    METERS.register("watts", open_watts)

A package that is installed adds to a registry by an entry point of the registry's group, and
its users write nothing::

    [project.entry-points."eatss.meters"]
    watts = "my_package.meters:open_watts"

Entry points are read when a name is asked for that is not built in, or all names are.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from eatss.diagnostics import InputError, input_error

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
        self._built_in = frozenset(built_in)
        self._of = of
        self._things: dict[str, T] = {}
        for name, thing in built_in.items():
            self._things[name] = self._checked(name, thing, "eatss")

    def register(self, name: str, thing: T) -> None:
        """Add a thing under a name that nothing has yet.

        Raises:
            InputError: ``EATSS-X003`` the name is taken, ``EATSS-X004`` it is not of the kind.
        """
        if name in self.names():
            raise input_error(
                "EATSS-X003",
                f"there is a {self.kind} '{name}' already",
                hint="register it under another name",
            )
        self._things[name] = self._checked(name, thing, "this program")

    def remove(self, name: str) -> None:
        """Forget a thing that :meth:`register` added; nothing happens where there is none."""
        self._things.pop(name, None)

    def names(self) -> tuple[str, ...]:
        """Return all names: those of eatss, those registered, those of packages."""
        installed = (one.name for one in entry_points(group=self.group))
        return tuple(dict.fromkeys((*self._things, *sorted(installed))))

    def provider(self, name: str) -> str:
        """Return who offers a name: ``eatss``, a package with its version, or ``this program``."""
        if name in self._built_in:
            return "eatss"
        for entry in entry_points(group=self.group, name=name):
            return entry.value if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
        return "this program"

    def get(self, name: str) -> T:
        """Return the thing of a name.

        Raises:
            InputError: ``EATSS-X005`` there is none, ``EATSS-X004`` a package's cannot be loaded.
        """
        if name not in self._things:
            found = entry_points(group=self.group, name=name)
            if not found:
                raise self._unknown(name)
            self._things[name] = self._loaded(next(iter(found)))
        return self._things[name]

    def _loaded(self, entry: EntryPoint) -> T:
        try:
            thing = entry.load()
        except Exception as error:  # code of another package: anything may come of it
            raise input_error(
                "EATSS-X004",
                f"the {self.kind} '{entry.name}' ({entry.value}) cannot be loaded: "
                f"{type(error).__name__}: {error}",
                hint="mend or remove the package that offers it",
            ) from error
        return self._checked(entry.name, thing, entry.value)

    def _checked(self, name: str, thing: T, where: str) -> T:
        fits = callable(thing) if self._of is None else isinstance(thing, self._of)
        if not fits:
            wanted = "a function" if self._of is None else self._of.__name__
            raise input_error(
                "EATSS-X004",
                f"the {self.kind} '{name}' of {where} is of the type {type(thing).__name__}, "
                f"not {wanted}",
            )
        return thing

    def _unknown(self, name: str) -> InputError:
        names = self.names()
        close = get_close_matches(name, names, n=1)
        return input_error(
            "EATSS-X005",
            f"there is no {self.kind} '{name}'",
            hint=f"did you mean {close[0]}?" if close else f"there is {', '.join(names)}",
        )
