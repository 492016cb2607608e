"""A package that is installed beside eatss and offers something by an entry point."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from eatss.base.extensions import Registry


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    registry: Registry[Any],
    *,
    entry: str,
    files: dict[str, str],
) -> None:
    """Put files and the metadata of their package where Python finds them, for one test."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    metadata = folder / "offered-1.0.dist-info"
    metadata.mkdir(exist_ok=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[{registry.group}]\n{entry}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(registry, "_things", dict(registry._things))
