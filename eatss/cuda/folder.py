"""``Program`` in, a folder of files out: text, launch plan, README and the C that it was made from.

The plan is placed last: until then the folder holds no program.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from eatss.base.diagnostics import input_error
from eatss.base.files import check_places, is_c_text, place_files, read_regular
from eatss.cuda.text import argument_text
from eatss.frontend.source import read_bytes
from eatss.polyhedral.expression import ElementType
from eatss.program import Original, Program, program_to_dict

_FLOATING = frozenset(one.value for one in ElementType if one.is_floating)


def readme_text(program: Program) -> str:
    """Return the README in Markdown; what a kernel does stands above it in the text."""
    major, minor = divmod(program.compute_capability, 10)
    source, stem = program.original.file, program.file.removesuffix(".cu")
    nvcc = " ".join(["nvcc -O3", f"-arch=sm_{program.compute_capability}", *program.flags])
    lines = [
        f"# {program.name}",
        "",
        f"CUDA made by eatss from `{source}` for {program.gpu} (compute capability "
        f"{major}.{minor}). It computes in {program.dtype}, with indices of "
        f"{program.index_bits} bits. `plan.json` has arguments, grids and blocks.",
        "",
        *_rounding(program),
    ]
    if program.recipe is not None:  # of eatss, with a program of its own
        original = program.original
        given = [
            f"{p.name}={'VALUE' if p.default is None else p.default}"
            for p in program.parameters
            if p.kind == "argument"
        ]
        defines = [f"-D{' '.join(define.split())}" for define in original.defines]
        includes = [f"-I{place}" for place in original.include_dirs]
        made = f"{source.removesuffix('.c')}.o"
        gcc = shlex.join(("gcc", "-O2", *defines, *includes, "-c", source, "-o", made))
        run = " ".join([f"./{stem} 20", *given])
        lines += ["Timed on random data, 20 times; below, compared with the C source, too:"]
        lines += _shell(f"{nvcc} -DEATSS_MAIN {program.file} -o {stem}", run)
        own = f"{nvcc} -DEATSS_MAIN -DEATSS_CHECK {program.file} {made} -o {stem}"
        lines += _shell(gcc, own)
    lines += ["As part of another program, and verified (a GPU is used where there is one):"]
    lines += _shell(f"{nvcc} -c {program.file}", "eatss verify .")
    for one in program.parameters:
        how = "an argument" if one.kind == "argument" else f"`-D{one.macro}=VALUE` for nvcc"
        lines.append(
            f"- size `{one.name}`: {'none' if one.default is None else one.default}; {how}"
        )
    for entry in program.entries:
        arguments = ", ".join([*map(argument_text, entry.arguments), "cudaStream_t stream"])
        lines += ["", f"Region {entry.region}, of `{entry.function}`, on device pointers:", ""]
        lines += ["```c++", f'extern "C" int {entry.launcher}({arguments});', "```"]
    lines += [
        "",
        "Launchers return 0, a positive `cudaError_t`, or a negative number where an assumption",
        "that the text names does not hold. They do not wait for the card.",
    ]
    return "".join(f"{line}\n" for line in lines)


def _shell(*commands: str) -> tuple[str, ...]:
    return ("", "```", *commands, "```", "")


def _rounding(program: Program) -> list[str]:
    """Return in which ways results are rounded otherwise than by C."""
    kernels = program.kernels
    ways = []
    if any(kernel.reassociates for kernel in kernels):
        ways.append("Some sums, products, maxima or minima are combined in another order.")
    if any(kernel.regroups for kernel in kernels):
        ways.append(
            "Some factors are multiplied in another order or after a sum, or the products of a "
            "statement are added one by one."
        )
    inexact = sorted({one for kernel in kernels for one in kernel.inexact_instructions})
    if inexact:
        ways.append(f"These instructions round otherwise: {', '.join(inexact)}.")
    bounds = sorted({str(one) for kernel in kernels for one in kernel.rounded_sums})
    ways += [f"Before other roundings, {bound} of the exact sum." for bound in bounds]
    if ways:
        return [
            "Results may differ from those of C by rounding:",
            "",
            *(f"- {w}" for w in ways),
            "",
        ]
    types = {one.element_type for entry in program.entries for one in entry.arguments}
    types |= {one.element_type for entry in program.entries for one in entry.temporaries}
    if types & _FLOATING:
        return ["Every floating-point operation keeps the order of the C source.", ""]
    return []


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)
_UNUSUAL = re.compile(r"[^\w.+-]", re.ASCII)
_MAX_HEADERS = 2_000
_HEADERS = "include"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFiles:
    """The original with every file it needs.

    ``files`` are paths relative to the folder, with ``/``, and contents; the C file is the first.
    ``folders`` are those that ``original.include_dirs`` name: they may hold no file.
    """

    original: Original
    files: tuple[tuple[str, bytes], ...]
    folders: tuple[str, ...]


def program_name(source: str | os.PathLike[str], function: str) -> str:
    """Return the name of the program made from a path, or from text that has ``function``."""
    if is_c_text(source):
        return function
    return _UNUSUAL.sub("_", re.sub("^-", "_", Path(source).stem)) or function


def original_files(
    source: str | os.PathLike[str],
    name: str,
    *,
    defines: Sequence[str],
    include_dirs: Sequence[str],
) -> OriginalFiles:
    """Gather the C file and the headers of the user's that it includes.

    Headers are found as a compiler finds them, in the folder of the file that includes them and
    in ``include_dirs``; the system's are not among them. Where all lie in the folder of the C
    file or below, they are placed as they are; else all of them go below ``include/``, at the same
    places relative to one another.

    Args:
        source: path of the C file, or C source text.
        name: name of the program.
        defines: macros as for a C compiler.
        include_dirs: folders searched for headers.

    Raises:
        InputError: the file cannot be read.
    """
    if is_c_text(source):
        assert isinstance(source, str)
        home, own_name = Path.cwd(), f"{name}.c"
        data = source.encode("utf-8", "surrogateescape")
    else:
        path = Path(source)
        home, own_name = path.absolute().parent, _UNUSUAL.sub("_", path.name)
        data = read_bytes(os.fspath(source))
    home = Path(os.path.normpath(home))
    if own_name in (f"{name}.cu", "plan.json", "README.md"):
        own_name = f"{name}.c"
    searched = [Path(os.path.normpath(Path(folder).absolute())) for folder in include_dirs]
    headers = dict(_headers(data, home, searched))
    places = [*(header.parent for header in headers), *(d for d in searched if d.is_dir())]
    if all(place.is_relative_to(home) for place in places):
        base, prefix, folders = home, PurePosixPath(), searched
    else:
        base = Path(os.path.commonpath([home, *places]))
        prefix, folders = PurePosixPath(_HEADERS), [home, *searched]
    copied = {str(prefix / p.relative_to(base).as_posix()): text for p, text in headers.items()}
    copied.pop(own_name, None)
    wanted = [
        str(prefix / folder.relative_to(base).as_posix())
        for folder in dict.fromkeys(folders)
        if folder.is_dir() and folder.is_relative_to(base)
    ]
    original = Original(file=own_name, defines=tuple(defines), include_dirs=tuple(wanted))
    return OriginalFiles(
        original=original,
        files=((own_name, data), *sorted(copied.items())),
        folders=tuple(wanted),
    )


def _headers(data: bytes, home: Path, searched: Sequence[Path]) -> Iterator[tuple[Path, bytes]]:
    """Yield the headers a file includes, directly or not, with their contents."""
    todo = [(home, data)]
    seen: set[Path] = set()
    while todo and len(seen) < _MAX_HEADERS:
        folder, text = todo.pop()
        for match in _INCLUDE.finditer(text):
            header = _find(match[1].decode("utf-8", "surrogateescape"), (folder, *searched))
            if header is None or header in seen:
                continue
            seen.add(header)
            found = header.read_bytes()
            todo.append((header.parent, found))
            yield header, found


def _find(name: str, folders: Sequence[Path]) -> Path | None:
    """Return a header as an absolute path without ``..``; one named absolutely stays there."""
    if Path(name).is_absolute():
        return None
    for folder in folders:
        candidate = Path(os.path.normpath(folder / name))
        try:
            if candidate.is_file() and os.access(candidate, os.R_OK):
                return candidate
        except (OSError, ValueError):
            continue
    return None


_PLAN = "plan.json"
_README = "README.md"
_CHECKSUMS = "checksums"
"""Key of the plan: SHA-256 of every file as written, of the plan itself without this key."""
_MOST_BYTES = 64 * 2**20


def write_program(
    program: Program, originals: OriginalFiles, directory: Path, *, force: bool = False
) -> tuple[str, ...]:
    """Write a program and the C it was made from into a folder, made if need be.

    A file is replaced if eatss wrote it and nobody changed it since, or if ``force`` holds;
    nothing else in the folder is touched. Links in the folder are not followed.

    Returns:
        The files of the program, relative to the folder; the ``.cu`` file is the first.

    Raises:
        InputError: ``EATSS-C008``: the folder cannot be written, or holds other files than
            eatss's under the names needed.
    """
    contents = program_files(program, originals)
    target = Path(os.path.realpath(directory))
    try:
        if not target.exists():
            place_files(target, contents, folders=originals.folders, last=_PLAN)
        else:
            check_places(target, [*contents, *(f"{folder}/" for folder in originals.folders)])
            changed = {n: data for n, data in contents.items() if _digest(target / n) != _sha(data)}
            if not force:
                _refuse_foreign(directory, target, program.name, changed)
            if changed or not all((target / folder).is_dir() for folder in originals.folders):
                place_files(target, changed, folders=originals.folders, last=_PLAN)
    except OSError as error:
        raise input_error(
            "EATSS-C008",
            f"cannot write '{directory}': {error.strerror or error}",
            hint="name a folder that can be written with -o",
        ) from None
    return tuple(contents)


def program_files(program: Program, originals: OriginalFiles) -> dict[str, bytes]:
    """Return what the files of a program hold, by name; the ``.cu`` file is the first."""
    plan = program_to_dict(program)
    contents = {
        program.file: program.text.encode(),
        _PLAN: _json(plan),
        _README: readme_text(program).encode(),
        **dict(originals.files),
    }
    checksums = {name: _sha(data) for name, data in sorted(contents.items())}
    return {**contents, _PLAN: _json({**plan, _CHECKSUMS: checksums})}


def _json(document: Mapping[str, Any]) -> bytes:
    return (json.dumps(document, indent=2) + "\n").encode()


def _sha(data: bytes) -> str:
    return sha256(data).hexdigest()


def _digest(path: Path) -> str | None:
    """Return the checksum of a file; ``None`` where there is no regular file, or a link."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        return _sha(read_regular(path, _MOST_BYTES))
    except OSError:
        return None


def _refuse_foreign(
    directory: Path, target: Path, program: str, changed: Mapping[str, bytes]
) -> None:
    """Refuse to replace files that are not as eatss wrote them for a program."""
    taken = [name for name in changed if os.path.lexists(target / name)]
    whole = {name for name, same in _written(target, program) if same} if taken else set()
    foreign = [f"'{name}'" for name in taken if name not in whole]
    if foreign:
        raise input_error(
            "EATSS-C008",
            f"'{directory}' holds files that are of no program '{program}', or were edited, which "
            f"would be replaced: {', '.join(foreign)}",
            hint="name another folder with -o, or replace them with --force",
        )


def _written(target: Path, program: str) -> Iterator[tuple[str, bool]]:
    """Yield the files of a program in a folder, and whether each is still as it was written."""
    try:
        plan = json.loads(read_regular(target / _PLAN, _MOST_BYTES))
        checksums = dict(plan.pop(_CHECKSUMS))
    except (OSError, LookupError, TypeError, ValueError, AttributeError, RecursionError):
        return
    for name, checksum in checksums.items() if plan.get("name") == program else ():
        of_plan = name == _PLAN and not (target / _PLAN).is_symlink()
        found = _sha(_json(plan)) if of_plan else _digest(target / name)
        yield name, found == checksum
