"""Selections and programs that were found before, by all that decides them.

The key is made of the text of the source and of every header that it may include, how it is read,
what is asked for, the figures of the card, and the versions of eatss and of what it is built on.
Where something decides that has no version, or it cannot be told what is included, nothing is
kept. Isl, the solver and libclang are not loaded for what is found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from eatss.base.cache import Cache, key_of, versions
from eatss.base.diagnostics import InputError
from eatss.base.files import StrPath, folder_named, read_regular
from eatss.base.frozen import Names
from eatss.base.options import changed
from eatss.choose.options import SelectOptions
from eatss.frontend.options import Reading
from eatss.session.source import MAX_BYTES, Source, UnknownFilesError

if TYPE_CHECKING:
    from eatss.program import Program
    from eatss.session.found import Found

Noun = TypeVar("Noun")


def kept(
    cache: Cache | None,
    kind: Literal["select", "codegen", "interface"],
    find: Callable[[], Found[Noun]],
    source: Source,
    reading: Reading,
    *asked: object,
) -> Found[Noun]:
    """Return what was found before of the same arguments, or what ``find`` finds.

    That is kept, if nothing that decides it has changed meanwhile.
    """
    from eatss.session.found import found_bytes, found_of  # noqa: PLC0415 - a printed one needs none

    def key() -> str:
        try:
            return _key(kind, source, reading, map(_deciding, asked))
        except (UnknownFilesError, InputError, OSError, ValueError, TypeError):
            return ""  # what is wrong is told by who reads it

    place = "" if cache is None else key()
    if cache is None or not place:
        return find()
    data = cache.get(kind, place)
    found: Found[Noun] | None = None if data is None else found_of(kind, data)
    if found is None:
        found = find()
        if found.lasting and key() == place:
            cache.put(kind, place, found_bytes(found))
    return found


def write_kept(
    program: Program,
    source: Source,
    reading: Reading,
    folder: StrPath,
    *,
    force: bool = False,
) -> Names:
    """Write the folder of a program without reading its source anew; as ``Session.write``."""
    from eatss.cuda.folder import (  # noqa: PLC0415 - select needs none
        original_files,
        write_program,
    )

    originals = original_files(
        source.c,
        program.name,
        defines=program.original.defines,
        include_dirs=reading.frontend().include_dirs,
    )
    return write_program(program, originals, folder_named(folder), force=force)


def _key(
    kind: str,
    source: Source,
    reading: Reading,
    asked: Iterable[object],
) -> str:
    """Return the key of a result.

    Raises:
        UnknownFilesError: it cannot be told which files are read.
        OSError: one of them cannot be read.
        ValueError: a path is none.
        TypeError: something is of a type that no key is made of.
    """
    frontend = reading.frontend()
    files = source.files(frontend.include_dirs)
    schedule = reading.ppcg_schedule
    read = None if schedule is None else read_regular(schedule, MAX_BYTES)
    folders = tuple(Path(folder).is_dir() for folder in frontend.include_dirs)
    apart = source.python is None and (len(files) > 1 or folders)
    return key_of(
        kind,
        versions(),
        files,
        (Path.cwd(), folders) if apart else None,  # the places of headers then are in the result
        (reading.type_name, frontend, read, reading.recompute),
        *asked,
    )


def _objective(options: SelectOptions) -> str | None:
    """Return whose the objective is.

    Raises:
        UnknownFilesError: it is of this program, and nothing tells it from others of its name.
    """
    if options.objective is None:
        return None
    from eatss.choose.objectives import OBJECTIVES  # noqa: PLC0415 - it needs NumPy

    version = OBJECTIVES.version(options.objective)
    if version is None:
        raise UnknownFilesError(options.objective)
    return version


def _deciding(noun: object) -> object:
    """Return what decides of an argument: what is given of it, mappings in their order.

    That may be the order of the result.

    Raises:
        UnknownFilesError: nothing tells the objective from others of its name.
    """
    if not is_dataclass(noun):
        return noun
    given = [(name, _in_order(getattr(noun, name))) for name in changed(noun)]
    whose = _objective(noun) if isinstance(noun, SelectOptions) else None
    return type(noun).__qualname__, given, whose


def _in_order(value: object) -> object:
    if isinstance(value, Mapping):
        return {"in order": [(key, _in_order(item)) for key, item in value.items()]}
    return value
