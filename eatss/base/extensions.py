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

import os
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Generic, TypeVar

from eatss.base.diagnostics import InputError, did_you_mean, input_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
        self._things: dict[str, T] = {}
        self._registered: set[str] = set()
        self._built_in = frozenset(built_in)
        for name, thing in built_in.items():
            self._things[name] = self._checked(name, thing, "eatss")

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
        self._registered.add(name)

    def remove(self, name: str) -> None:
        """Forget a thing that :meth:`register` added; nothing happens where there is none."""
        self._things.pop(name, None)
        self._registered.discard(name)

    def names(self) -> tuple[str, ...]:
        """Return all names: those of eatss, those registered, those of packages."""
        installed = (one.name for one in _offered(self.group))
        return tuple(dict.fromkeys((*self._things, *sorted(installed))))

    def get(self, name: str) -> T:
        """Return the thing of a name, or of ``module:name``, which any process can import.

        Raises:
            InputError: ``EATSS-X005`` there is none, ``EATSS-X003`` a package's cannot be loaded.
        """
        if name not in self._things:
            entry = next((one for one in _offered(self.group) if one.name == name), None)
            if entry is not None:
                self._things[name] = self._loaded(name, entry.value, entry.load)
            elif ":" in name:
                self._things[name] = self._loaded(name, name, lambda: resolve_name(name))
                self._registered.add(name)
            else:
                raise self._unknown(name)
        return self._things[name]

    def version(self, name: str) -> str | None:
        """Return what tells a thing from others that had its name: its package and the version.

        Returns:
            ``None`` where nothing does, as of what this program registered.
        """
        if name in self._registered or name in self._built_in:
            return None if name in self._registered else "eatss"
        offered = next((one for one in _offered(self.group) if one.name == name), None)
        if offered is None:
            return "eatss"
        dist = offered.dist
        return None if dist is None else f"{dist.name} {dist.version} {offered.value}"

    def _loaded(self, name: str, where: str, load: Callable[[], T]) -> T:
        try:
            thing = load()
        except Exception as error:  # code of another package: anything may come of it
            raise input_error(
                "EATSS-X003",
                f"the {self.kind} '{name}' ({where}) cannot be loaded: "
                f"{type(error).__name__}: {error}",
                hint="mend or remove the package that offers it",
            ) from error
        return self._checked(name, thing, where)

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

    def _unknown(self, name: str) -> InputError:
        return input_error(
            "EATSS-X005",
            f"there is no {self.kind} '{name}'",
            hint=did_you_mean(name, self.names(), "choose one of"),
        )


def _offered(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of packages, read again where packages have come or gone."""
    return _read(group, tuple(map(_place, sys.path)))


def _place(path: str) -> tuple[str, int, int]:
    """Return a folder of packages, told from what it was before packages came or went."""
    try:
        found = os.stat(path or ".")  # noqa: PTH116 - asked for often
    except OSError:
        return path, 0, 0
    return path, found.st_ino, found.st_mtime_ns


@lru_cache(maxsize=256)
def _read(group: str, places: tuple[tuple[str, int, int], ...]) -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - what is built in needs none

    return tuple(entry_points(group=group))
