"""Finds ``gpu_profiles/`` and ``kernels/`` in a checkout and in an installed wheel."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@lru_cache
def data_directory(name: str) -> Path:
    """Return the folder ``name`` (``gpu_profiles`` or ``kernels``) shipped with eatss.

    A checkout keeps it beside the package, a wheel inside it.

    Raises:
        FileNotFoundError: neither exists, so the installation is broken.
    """
    checkout = _PACKAGE.parent / name
    if (_PACKAGE.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    installed = Path(str(files("eatss._data"))) / name
    if installed.is_dir():
        return installed
    raise FileNotFoundError(f"eatss is installed without its folder {name}")
