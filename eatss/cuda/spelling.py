"""Names that generated CUDA gives to things that have none in the kernel."""

from __future__ import annotations

SHARED = "sh"
"""What a kernel calls the structure of what it has in shared memory."""
