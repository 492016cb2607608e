"""Finds the folders of data that come with eatss, in a checkout and in an installed wheel."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent

IN_A_CHECKOUT = {
    "gpu_profiles": Path("gpu_profiles"),
    "kernels": Path("kernels"),
    "sweeps": Path("benchmarks", "results", "h200", "sweeps"),
}
"""Where a checkout has each folder of data; a wheel has it in ``eatss/_data``."""


@lru_cache
def data_directory(name: str) -> Path:
    """Return the folder ``name`` of ``IN_A_CHECKOUT``, shipped with eatss.

    Raises:
        FileNotFoundError: neither exists, so the installation is broken.
    """
    checkout = _PACKAGE.parent / IN_A_CHECKOUT[name]
    if (_PACKAGE.parent / "pyproject.toml").is_file() and checkout.is_dir():
        return checkout
    installed = _PACKAGE / "_data" / name
    if installed.is_dir():
        return installed
    raise FileNotFoundError(f"eatss is installed without its folder {name}")
