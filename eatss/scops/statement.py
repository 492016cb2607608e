"""Statements and their accesses."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from eatss.diagnostics import SourceSpan
from eatss.scops.expression import Expression

if TYPE_CHECKING:
    import islpy as isl


class AccessKind(Enum):
    """Whether an access reads or writes."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """One reference of a statement, in one direction.

    ``relation`` maps the statement's domain to array elements, restricted to the
    domain; it is single-valued. ``A[i] += x`` gives a read and a write of ``A``
    that share the same ``text`` and ``span``.
    """

    array: str
    kind: AccessKind
    relation: isl.Map
    text: str
    span: SourceSpan

    @property
    def is_write(self) -> bool:
        """Whether the access writes."""
        return self.kind is AccessKind.WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """An assignment inside the region, run once for each point of its domain.

    ``domain`` lives in the space ``name[loops…]``, dimensions named as the
    counters, outermost first; its points are the counters' own values (no
    normalisation). ``schedule`` maps the domain to the time of the original
    program, a vector ``[c0, l1, c1, l2, c2, …]`` of textual positions and
    (negated, for loops that count down) counters, equally long for all
    statements of the scop.

    ``accesses[0]`` is the write; reads follow in the order of the source.
    ``value`` is the value stored: for ``A[i] += e`` the tree ``A[i] + e``.
    ``text`` is the source text in one line, macros not expanded. ``ppcg_name`` is what
    PPCG calls it (empty: the region was not read from C); the statements that ``a = b = c`` is read
    as share one name. ``written_in`` is the name of the file of ``span`` where that is not the C.
    ``recomputed`` are the reads of the source whose values the statement computes anew instead.
    """

    name: str
    loops: tuple[str, ...]
    domain: isl.Set
    schedule: isl.Map
    accesses: tuple[Access, ...]
    value: Expression
    text: str
    span: SourceSpan
    ppcg_name: str = ""
    written_in: str = ""
    recomputed: tuple[Access, ...] = ()

    @property
    def write(self) -> Access:
        """The one write of the statement."""
        return self.accesses[0]

    @property
    def reads(self) -> tuple[Access, ...]:
        """The reads of the statement in the order of the source."""
        return self.accesses[1:]
