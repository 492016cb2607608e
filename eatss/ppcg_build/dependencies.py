"""What a build depends on, as make reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence


def dependency_text(targets: Sequence[str], needed: Sequence[str]) -> str:
    """Return rules that say which files targets are made from, as ``gcc -MD -MP`` writes them.

    A file that is needed and is no more is no error to make: it has a rule without a recipe.

    Args:
        targets: what is made.
        needed: what it is made from; the first is the source.
    """
    rule = f"{' '.join(map(_escaped, targets))}: {' '.join(map(_escaped, needed))}\n"
    return rule + "".join(f"\n{_escaped(name)}:\n" for name in needed[1:])


def _escaped(name: str) -> str:
    return re.sub(r"([ #])", r"\\\1", name).replace("$", "$$")
