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

from eatss.base.diagnostics import InputError, did_you_mean, input_error
from eatss.base.frozen import Names, distinct
from eatss.base.text import class_and_line

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
        self._things = {name: self._checked(name, one) for name, one in built_in.items()}

    def register(self, name: str, thing: T) -> None:
        """Add a thing under a name that nothing has yet.

        Raises:
            InputError: ``EATSS-X003``, the name is taken, or it is not of the kind.
        """
        if name in self.names():
            raise self._refused(name, "is there already", "register it under another name")
        self._things[name] = self._checked(name, thing)

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
            where = self._offered().get(name, name)
            if ":" not in where:
                raise input_error(
                    "EATSS-X005",
                    f"there is no {self.kind} '{name}'",
                    hint=did_you_mean(name, self.names(), "choose one of"),
                )
            try:
                thing = resolve_name(where)
            except Exception as error:  # code of another package: anything may come of it
                hint = f"mend the package, or name one of: {', '.join(self.names())}"
                why = f"of {where} cannot be loaded: {class_and_line(error)}"
                raise self._refused(name, why, hint) from error
            self._things[name] = self._checked(name, thing)
        return self._things[name]

    def version(self, name: str) -> str | None:
        """Return whose version tells a thing from others that had its name; ``None``: nothing does.

        Results of what others offer are therefore not kept.
        """
        return "eatss" if name in self._built_in else None

    def _offered(self) -> Mapping[str, str]:
        return _entry_points(self.group, tuple(sys.path))

    def _checked(self, name: str, thing: T) -> T:
        if not (callable(thing) if self._of is None else isinstance(thing, self._of)):
            wanted = "a function" if self._of is None else self._of.__name__
            why = f"is of the type {type(thing).__name__}, not {wanted}"
            raise self._refused(name, why, "mend the package or the program that has it")
        return thing

    def _refused(self, name: str, why: str, hint: str) -> InputError:
        return input_error("EATSS-X003", f"the {self.kind} '{name}' {why}", hint=hint)


@lru_cache(maxsize=64)
def _entry_points(group: str, folders: Names) -> Mapping[str, str]:
    """Return where the things of packages in some folders stand, by name."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - what is built in needs none

    del folders  # those of ``sys.path``
    return {one.name: one.value for one in entry_points(group=group)}
