"""What the steps of ``ppcg.py`` hand on: programs and variants, and what was measured of them."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

MANIFEST = "manifest.json"
DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of the original function; a scalar has no shape. ``flavour`` is of the data."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    flavour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PpcgProgram:
    """A C file at one precision, with its default sizes."""

    kernel: str
    dtype: str
    function: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PpcgVariant:
    """A program through PPCG with some arguments.

    ``status`` is ``wanted``, ``generated``, ``alias`` (the same text as ``same_as``) or
    ``not generated``.
    ``seed`` is that of random arguments.
    """

    kernel: str
    dtype: str
    name: str
    arguments: tuple[str, ...]
    status: Literal["wanted", "generated", "alias", "not generated"]
    reason: str = ""
    same_as: str = ""
    seed: str = ""
    host_statements: bool = False

    @property
    def folder(self) -> str:
        """Where its files are, below the folder of the manifest."""
        return f"{self.kernel}-{self.dtype}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Everything that was prepared; ``about`` says with what."""

    programs: tuple[PpcgProgram, ...]
    variants: tuple[PpcgVariant, ...]
    about: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelResources:
    """What ptxas says of one GPU kernel."""

    kernel: str
    registers: int
    spill_bytes: int
    stack_bytes: int
    shared_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A measurement of one variant.

    ``time_ms`` is that of a run in the window of the energy where there was one, ``short_time_ms``
    that of a tenth of a second before. ``status`` is ``ok``, ``wrong`` (other results than the
    reference's), ``slow`` (a run outlasts the limit), ``alias`` (the same text as the variant that
    ``reason`` names), or what failed. ``finite`` tells whether the
    data still were numbers after the window.
    """

    kernel: str
    dtype: str
    variant: str
    arguments: str
    session: str
    status: str
    reason: str = ""
    time_ms: float | None = None
    short_time_ms: float | None = None
    energy_j: float | None = None
    power_w: float | None = None
    runs: int = 0
    window_s: float | None = None
    updates: int | None = None
    sm_mhz: float | None = None
    throttle: str = ""
    max_rel_error: float | None = None
    restored: bool = False
    finite: bool | None = None
    host_statements: bool = False
    registers: int | None = None
    spill_bytes: int | None = None
    stack_bytes: int | None = None
    shared_bytes: int | None = None
    resources: tuple[KernelResources, ...] = ()
    card: str = ""
    at_s: float = 0.0


def save_manifest(manifest: Manifest, directory: Path) -> None:
    """Write the manifest into its folder."""
    text = json.dumps(asdict(manifest), indent=1)
    (directory / MANIFEST).write_text(text + "\n", encoding="utf-8")


def load_manifest(directory: Path) -> Manifest:
    """Read what :func:`save_manifest` wrote."""
    data = json.loads((directory / MANIFEST).read_text(encoding="utf-8"))
    return Manifest(
        programs=tuple(_program(one) for one in data["programs"]),
        variants=tuple(
            PpcgVariant(**{**one, "arguments": tuple(one["arguments"])}) for one in data["variants"]
        ),
        about=data["about"],
    )


def append_row(row: Row, path: Path) -> None:
    """Add a line to the results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(row)) + "\n")


def load_rows(paths: Iterable[Path]) -> tuple[Row, ...]:
    """Read results, compressed or not; a last line that was cut off is left out."""
    rows: list[Row] = []
    for path in paths:
        data = path.read_bytes()
        text = (lzma.decompress(data) if path.suffix == ".xz" else data).decode()
        for line in text.splitlines():
            if line.endswith("}"):
                row = json.loads(line)
                row["resources"] = tuple(KernelResources(**one) for one in row["resources"])
                rows.append(Row(**row))
    return tuple(rows)


def means(rows: Iterable[Row]) -> dict[tuple[str, str, str], tuple[float, float]]:
    """Return seconds and joules by kernel, type and variant, the mean of what was measured.

    A variant with the same text as another one has that one's.
    """
    every = [*rows]
    taken: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in every:
        if row.status == "ok" and row.time_ms and row.energy_j:
            own = taken.setdefault((row.kernel, row.dtype, row.variant), [])
            own.append((1e-3 * row.time_ms, row.energy_j))
    found = {
        key: (sum(one for one, _ in own) / len(own), sum(one for _, one in own) / len(own))
        for key, own in taken.items()
    }
    for row in every:
        same = found.get((row.kernel, row.dtype, row.reason))
        if row.status == "alias" and same is not None:
            found[row.kernel, row.dtype, row.variant] = same
    return found


def _program(data: dict[str, Any]) -> PpcgProgram:
    parameters = tuple(
        Parameter(**{**one, "shape": tuple(one["shape"])}) for one in data["parameters"]
    )
    return PpcgProgram(**{**data, "parameters": parameters})
