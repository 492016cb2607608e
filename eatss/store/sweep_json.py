"""A sweep as a JSON document, and read from wherever it is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace

from eatss.codec import Document
from eatss.diagnostics import Diagnostic, InputError, Severity, input_error
from eatss.files import read_regular
from eatss.notices import Warned, warn_caller
from eatss.shipped import located_sweep
from eatss.store.nouns import Sweep, as_result
from eatss.store.store import Store

SWEEP = Document(
    title="sweep",
    kind=Sweep,
    other_version="EATSS-D020",
    damaged="EATSS-D021",
    hint="export it again: eatss results export STORE -o FILE.json",
)

MOST_BYTES = 1 << 30
"""Of a file of JSON that is read."""


def read_sweep(
    path: str | os.PathLike[str], *, measurements: bool = True, warned: Warned = warn_caller
) -> Sweep:
    """Return a sweep that ``eatss sweep`` keeps, or one that was exported as JSON (``.json``).

        sweep = eatss.read_sweep("2mm.db")
        best = min((row for row in sweep.rows if row.measured), key=lambda row: row.time_s)

    Another process may be measuring into it: what it has kept by now is there.

    Args:
        path: A store, a JSON file of ``eatss results export``, or the name of a recorded sweep that
            comes with eatss (``"@gemm"``).
        measurements: Whether rows of a store have their measurements; without them they are read in
            a tenth of the time.
        warned: Is told of damaged rows of a store, which are left out; by default as
            ``EatssWarning``.

    Raises:
        InputError: ``EATSS-D001`` to ``EATSS-D007``, the store cannot be read; ``EATSS-D017``, no
            sweep of this name comes with eatss; ``EATSS-D020`` or ``EATSS-D021``, the JSON is of
            another version or damaged.
    """
    if not os.fspath(path).endswith(".json"):
        left_out: list[InputError] = []
        found = Store.read(
            located_sweep(path),
            measurements=measurements,
            left_out=lambda _, error: left_out.append(error),
        )
        if left_out:
            warned([_of_damaged(path, left_out)])
        return found
    found = SWEEP.from_dict(read_json(path))
    return replace(found, rows=tuple(map(as_result, found.rows)))


def _of_damaged(path: str | os.PathLike[str], left_out: Sequence[InputError]) -> Diagnostic:
    """Return the warning of rows that are left out: how many, and the first one's damage."""
    rows = "1 damaged row is" if len(left_out) == 1 else f"{len(left_out)} damaged rows are"
    first = left_out[0].diagnostics[0]
    return Diagnostic(
        code="EATSS-D009",
        severity=Severity.WARNING,
        message=f"{rows} left out: {first.message}",
        hint=f"take a copy; 'eatss results prune {os.fspath(path)} --damaged' removes such rows, "
        "and a sweep that goes on measures them again",
    )


def read_json(path: str | os.PathLike[str]) -> object:
    """Return what a JSON file holds.

    Raises:
        InputError: ``EATSS-D001``, it cannot be read; ``EATSS-D021``, it is no JSON.
    """
    try:
        return json.loads(read_regular(path, MOST_BYTES))
    except OSError as error:
        raise input_error(
            "EATSS-D001",
            f"'{os.fspath(path)}' cannot be read: {error.strerror or error}",
            hint="check the path",
        ) from None
    except (ValueError, RecursionError) as error:
        raise input_error(
            "EATSS-D021", f"'{os.fspath(path)}' is no JSON: {error}", hint="check the file"
        ) from None
