"""What is raised where code that PPCG generated is not of the form that is known."""

from __future__ import annotations


class NotUnderstoodError(Exception):
    """PPCG generated something that is read nowhere here; the sentence says what."""
