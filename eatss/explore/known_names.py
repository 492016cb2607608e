"""What the variants of a program can decide; a space that decides anything else is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from eatss.analysis.facts import KernelFacts
from eatss.analysis.mapping import mapped_loops
from eatss.analysis.structure import Structure
from eatss.diagnostics import InputError, input_error
from eatss.explore.layouts import short_name
from eatss.gpu import GpuProfile
from eatss.space.bound import BoundSpace
from eatss.space.decision_names import CUTS, OF_PPCG, SELECTING, is_decision
from eatss.space.derived import kernel_spaces
from eatss.space.parsed import parsed_space

_PLACED = re.compile(r"(tile|threads)_\d+")


def check_decisions(bound: BoundSpace, known: Iterable[str], *, ppcg: bool = False) -> None:
    """Refuse a space that decides what the program does not have, or has idle iterators.

    Args:
        bound: the space.
        known: what can be decided.
        ppcg: whether sizes may be given by position.

    Raises:
        InputError: ``EATSS-W013``.
    """
    names = sorted(known)
    decided = [name for name in bound.names if is_decision(name)]
    for name in (*decided, *bound.variant):
        if name not in names and not (ppcg and _PLACED.fullmatch(name)):
            raise _unknown(name, names, "the program has nothing that is decided by it")
    expressions = parsed_space(bound.space).expressions()
    used = {name for expression in expressions for name in expression.names}
    for name in bound.names:
        if name not in used and name not in names and not (ppcg and _PLACED.fullmatch(name)):
            raise _unknown(name, names, "it decides nothing, and nothing uses it")


def cuda_names(
    facts: Sequence[KernelFacts],
    structures: Mapping[str, tuple[Structure, ...]],
    profile: GpuProfile,
    parameters: Iterable[str],
) -> set[str]:
    """Return what variants of generated code can decide."""
    found = {*SELECTING, *parameters}
    spaces = kernel_spaces(facts, structures, profile)
    for kernel in facts:
        own = set(CUTS)
        own |= {f"tile_{loop.name}" for loop in kernel.loops}
        for loop in mapped_loops(kernel):
            own |= {f"threads_{loop.name}", f"points_{loop.name}"}
        own |= {f"staged_{reference.array}" for reference in kernel.references}
        prefix = f"{short_name(kernel.name)}."
        own |= {name.removeprefix(prefix) for name in spaces[kernel.name].staged.values()}
        found |= own | {f"{prefix}{name}" for name in own}
    return found


def ppcg_names(parameters: Iterable[str]) -> set[str]:
    """Return what variants of PPCG's code can decide beside sizes by position."""
    return {*OF_PPCG, *parameters}


def _unknown(name: str, known: Sequence[str], why: str) -> InputError:
    close = get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else f"there are: {', '.join(known)}"
    return input_error("EATSS-W013", f"'{name}' in the space: {why}", hint=hint)
