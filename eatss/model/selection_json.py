"""``Selection`` to and from plain JSON types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from eatss.analysis.structure import Spread
from eatss.diagnostics import Diagnostic, EatssError, InputError, input_error
from eatss.model.options import ModelOptions
from eatss.model.selection import (
    SCHEMA_VERSION,
    CellResult,
    DroppedCell,
    KernelSelection,
    PpcgOptions,
    ReferenceSelection,
    Selection,
    Sizes,
    Usage,
)
from eatss.prediction.expected import Prediction

_DERIVED = ("threads_per_block",)
_PREDICTIONS = ("predicted", "default")
_SIZES = ("tile_sizes", "weights", "block")
_NAMES = ("statements", "host_loops", "loops", "parallel", "inner_loops", "sum_loops")


def selection_to_dict(selection: Selection) -> dict[str, Any]:
    """Return ``selection`` as plain JSON types, keys in a fixed order."""
    uniform, options = selection.uniform_sizes, selection.ppcg_options
    of_ppcg = selection.options.target == "ppcg"
    return {
        "schema_version": selection.schema_version,
        "file": selection.file,
        "functions": list(selection.functions),
        "host_statements": list(selection.host_statements),
        "gpu": selection.gpu,
        "dtype": selection.dtype,
        "target": selection.options.target,
        "objective": selection.options.objective,
        "model": selection.model,
        "options": _flat(selection.options),
        "optimal": selection.optimal,
        "calibrated": selection.calibrated,
        "ppcg_sizes": selection.ppcg_sizes if of_ppcg else None,
        "ppcg_max_shared_memory": selection.ppcg_max_shared_memory if of_ppcg else None,
        "static_shared_bytes": selection.static_shared_bytes,
        "uniform_sizes": None if uniform is None else list(uniform),
        "ppcg_options": None if options is None else _flat(options),
        "ppcg_arguments": list(selection.ppcg_arguments) if of_ppcg else None,
        "warnings": [warning.to_dict() for warning in selection.warnings],
        "kernels": [_kernel_to_dict(kernel) for kernel in selection.kernels],
    }


def selection_from_dict(document: Mapping[str, Any]) -> Selection:
    """Read what :func:`selection_to_dict` wrote; derived entries are not read.

    Raises:
        InputError: the document is not of this schema.
    """
    version = document.get("schema_version") if isinstance(document, Mapping) else None
    if version != SCHEMA_VERSION:
        raise input_error(
            "EATSS-M010",
            f"this is no selection of schema version {SCHEMA_VERSION}",
            hint="write it anew with eatss select --format json",
        )
    try:
        return _read(document)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        detail = f"no entry {error}" if isinstance(error, KeyError) else str(error)
        raise _malformed(detail) from error


def _malformed(detail: str) -> EatssError:
    return input_error("EATSS-M011", f"this selection is damaged: {detail}")


def _read(document: Mapping[str, Any]) -> Selection:
    uniform = document["uniform_sizes"]
    return Selection(
        schema_version=document["schema_version"],
        file=_text(document["file"]),
        functions=_texts(document["functions"]),
        host_statements=_texts(document["host_statements"]),
        gpu=_text(document["gpu"]),
        dtype=_text(document["dtype"]),
        options=ModelOptions(**document["options"]),
        kernels=tuple(_kernel_from_dict(kernel) for kernel in document["kernels"]),
        static_shared_bytes=int(document["static_shared_bytes"]),
        calibrated=bool(document["calibrated"]),
        uniform_sizes=None if uniform is None else tuple(int(size) for size in uniform),
        ppcg_options=None
        if document["ppcg_options"] is None
        else PpcgOptions(**document["ppcg_options"]),
        warnings=tuple(Diagnostic.from_dict(found) for found in document.get("warnings", ())),
    )


def _flat(noun: Any) -> dict[str, Any]:
    """Return the fields of a noun, tuples as lists."""
    values = ((f.name, getattr(noun, f.name)) for f in fields(noun))
    return {name: list(v) if isinstance(v, tuple) else v for name, v in values}


def _kernel_to_dict(kernel: KernelSelection) -> dict[str, Any]:
    entries = _flat(kernel)
    for name in _SIZES:
        entries[name] = dict(getattr(kernel, name))
    entries["threads_per_block"] = kernel.threads_per_block
    entries["references"] = [_flat(reference) for reference in kernel.references]
    entries["usage"] = {
        usage.name: {key: value for key, value in _flat(usage).items() if key != "name"}
        for usage in kernel.usage
    }
    entries["alternatives"] = [_cell_to_dict(cell) for cell in kernel.alternatives]
    entries["dropped"] = [_flat(cell) for cell in kernel.dropped]
    for name in _PREDICTIONS:
        entries[name] = _prediction_to_dict(getattr(kernel, name))
    entries["spread"] = None if kernel.spread is None else _flat(kernel.spread)
    return entries


def _kernel_from_dict(document: Mapping[str, Any]) -> KernelSelection:
    entries = {name: value for name, value in document.items() if name not in _DERIVED}
    for name in _SIZES:
        entries[name] = _sizes(document[name])
    for name in _NAMES:
        entries[name] = _texts(document[name])
    entries["references"] = tuple(
        ReferenceSelection(
            **{**r, **{name: _texts(r[name]) for name in ("statements", "temporal", "spatial")}}
        )
        for r in document["references"]
    )
    entries["usage"] = tuple(Usage(name=name, **u) for name, u in document["usage"].items())
    entries["alternatives"] = tuple(
        CellResult(**{**cell, "tile_sizes": _sizes(cell["tile_sizes"])})
        for cell in document["alternatives"]
    )
    entries["dropped"] = tuple(
        DroppedCell(**{**cell, "constraints": _texts(cell["constraints"])})
        for cell in document["dropped"]
    )
    for name in _PREDICTIONS:
        entries[name] = _prediction_from_dict(document[name])
    spread = document["spread"]
    entries["spread"] = None if spread is None else Spread(**spread)
    if entries["optimal"] not in ("proven", "best found"):
        raise ValueError(f"optimal is {entries['optimal']!r}")
    return KernelSelection(**entries)


def _prediction_to_dict(prediction: Prediction | None) -> dict[str, Any] | None:
    if prediction is None:
        return None
    return {
        **_flat(prediction),
        "power_w": prediction.power_w,
        "times_s": dict(prediction.times_s),
        "energies_j": dict(prediction.energies_j),
    }


def _prediction_from_dict(document: Mapping[str, Any] | None) -> Prediction | None:
    if document is None:
        return None
    entries = {name: value for name, value in document.items() if name != "power_w"}
    for name in ("times_s", "energies_j"):
        entries[name] = tuple((_text(key), float(value)) for key, value in document[name].items())
    return Prediction(**entries)


def _cell_to_dict(cell: CellResult) -> dict[str, Any]:
    return {**_flat(cell), "tile_sizes": dict(cell.tile_sizes)}


def _sizes(document: Mapping[str, Any]) -> Sizes:
    return tuple((_text(name), int(size)) for name, size in document.items())


def _texts(document: Iterable[Any]) -> tuple[str, ...]:
    if isinstance(document, str):
        raise TypeError(f"{document!r} is not a list")
    return tuple(_text(entry) for entry in document)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value
