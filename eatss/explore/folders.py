"""Folders of variants: a new one for each time that one is made."""

from __future__ import annotations

from itertools import count
from pathlib import Path


def own_folder(parent: str, variant: str) -> Path:
    """Make and return a folder that nobody else has: ``VARIANT``, else ``VARIANT-2`` and so on."""
    for turn in count(1):
        folder = Path(parent) / (variant if turn == 1 else f"{variant}-{turn}")
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError
