"""Whether this process runs in a container, where a card has to be passed in from the host."""

from __future__ import annotations

from pathlib import Path


def in_container(root: Path = Path("/")) -> bool:
    """Return whether this process runs in a container, as far as files tell."""
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists():
        return True
    try:
        groups = (root / "proc/1/cgroup").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(word in groups for word in ("docker", "kubepods", "containerd", "libpod", "lxc"))
