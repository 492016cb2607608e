"""``Program`` in, a folder of files out: text, launch plan, README and the original."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from eatss.codegen.original import OriginalFiles
from eatss.codegen.readme import readme_text
from eatss.diagnostics import EatssError, InputError, input_error
from eatss.program import Program, load_program, program_to_dict

_PLAN = "plan.json"
_README = "README.md"
_SHOWN = 5


def write_program(
    program: Program, originals: OriginalFiles, directory: Path, *, force: bool = False
) -> tuple[str, ...]:
    """Write a program and the C it was made from into a folder, made if need be.

    A file of the same name is replaced if a program was generated into this folder before, or if
    ``force`` holds; nothing else in the folder is touched.

    Returns:
        The files of the program, relative to the folder; the ``.cu`` file is the first.

    Raises:
        InputError: ``EATSS-C008``: the folder cannot be written, or holds files that are not
            eatss's under the names needed; then nothing was written.
    """
    contents = _contents(program, originals)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        changed = {
            name: data
            for name, data in contents.items()
            if not (directory / name).exists() or (directory / name).read_bytes() != data
        }
        if not force:
            _refuse_foreign(directory, changed, originals.original.file)
        for folder in originals.folders:
            (directory / folder).mkdir(parents=True, exist_ok=True)
        for name, data in changed.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(data)
    except OSError as error:
        raise _cannot_write(directory, error) from None
    return tuple(contents)


def _contents(program: Program, originals: OriginalFiles) -> dict[str, bytes]:
    plan = json.dumps(program_to_dict(program), indent=2) + "\n"
    return {
        program.file: program.text.encode(),
        _PLAN: plan.encode(),
        _README: readme_text(program).encode(),
        **dict(originals.files),
    }


def _refuse_foreign(directory: Path, changed: Mapping[str, bytes], original: str) -> None:
    """Refuse to replace files in a folder that no such program was generated into."""
    taken = [name for name in changed if (directory / name).exists()]
    if not taken:
        return
    try:
        before = load_program(directory)
    except EatssError:
        ours: frozenset[str] = frozenset()
    else:
        if before.original.file == original:
            return
        ours = frozenset((before.file, before.original.file, _PLAN, _README))
    foreign = [name for name in taken if name not in ours]
    if foreign:
        more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
        names = ", ".join(f"'{name}'" for name in foreign[:_SHOWN]) + more
        raise input_error(
            "EATSS-C008",
            f"'{directory}' holds files that eatss did not write and would replace: {names}",
            hint="name another folder with -o, or replace them with --force",
        )


def _cannot_write(directory: Path, error: OSError) -> InputError:
    place = error.filename or directory
    return input_error(
        "EATSS-C008",
        f"cannot write '{place}': {error.strerror or error}",
        hint="name a folder that can be written with -o",
    )
