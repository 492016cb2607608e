"""Reads the file and checks its bytes before libclang sees them."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path

from eatss.base.diagnostics import input_error
from eatss.base.files import read_regular
from eatss.frontend.findings import Findings, SourceText

MAX_BYTES = 4 * 1024 * 1024
_MAX_HEADERS = 2_000
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*["<]([^">\n]+)[">]', re.MULTILINE)


def read_bytes(file: str) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        InputError: If there is no such file, it is not a regular file, is too large, or
            cannot be read.
    """
    path = Path(file)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
            raise input_error("EATSS-F002", f"'{file}' is {kind}", hint="name a C source file")
        if status.st_size > MAX_BYTES:
            raise input_error(
                "EATSS-F003",
                f"'{file}' has {status.st_size / 2**20:.1f} MiB; the limit is "
                f"{MAX_BYTES // 2**20} MiB",
                hint="keep the region and what it needs in a file of its own",
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise input_error(
            "EATSS-F001",
            f"cannot read '{file}': {reason}",
            hint="check the path and its permissions",
        ) from None


def path_for_clang(file: str) -> str:
    """Return the path of a file in a form that is never taken for an option."""
    return os.path.join(os.curdir, file) if file.startswith("-") else file  # noqa: PTH118


def check_bytes(source: SourceText, findings: Findings) -> None:
    """Find what is wrong with a text before it is parsed."""
    data = source.data
    if len(data) > MAX_BYTES:
        findings.add(
            "EATSS-F003",
            f"'{source.file}' has {len(data) / 2**20:.1f} MiB; the limit is "
            f"{MAX_BYTES // 2**20} MiB",
            hint="keep the region and what it needs in a file of its own",
        )
        return
    if not data.strip():
        findings.add("EATSS-F004", f"'{source.file}' is empty", hint="name a C source file")
        return
    nul = data.find(b"\0")
    if nul >= 0:
        findings.add(
            "EATSS-F005",
            f"NUL byte in the source ({data.count(bytes(1))} in all)",
            span=source.span(nul, nul + 1),
            hint="save the file as UTF-8 text",
        )
        return


def check_includes(source: SourceText, include_dirs: tuple[str, ...], findings: Findings) -> None:
    """Refuse ``#include`` of devices, pipes and the like, from which libclang would read for ever.

    Headers are followed as far as they are found; macros and conditions are not looked at.
    """
    todo = [(Path(source.file).parent, source.data, True)]
    seen: set[Path] = set()
    while todo and len(seen) < _MAX_HEADERS:
        folder, data, is_main = todo.pop()
        for match in _INCLUDE.finditer(data):
            header = _find(match[1].decode("utf-8", "replace"), (folder, *map(Path, include_dirs)))
            if header is None or header in seen:
                continue
            seen.add(header)
            try:
                todo.append((header.parent, read_regular(header, MAX_BYTES), False))
            except IsADirectoryError:
                continue
            except OSError as error:
                is_large = error.errno == errno.EFBIG
                findings.add(
                    "EATSS-F003" if is_large else "EATSS-F002",
                    f"header '{header}' cannot be read: {error.strerror}",
                    span=source.span(match.start(1), match.end(1)) if is_main else None,
                    hint="include C headers only",
                )


def _find(name: str, folders: tuple[Path, ...]) -> Path | None:
    for folder in folders:
        try:
            candidate = folder / name
            if candidate.exists() and os.access(candidate, os.R_OK):
                return candidate
        except (OSError, ValueError):
            continue
    return None
