"""Numbers of isl as numbers of Python."""

from __future__ import annotations

import islpy as isl


def integer(value: isl.Val) -> int:
    """Return an integer of any size.

    Raises:
        isl.Error: the bound on isl's operations is reached; isl then prints numbers no more.
    """
    text = value.to_str()
    if text is None:
        raise isl.Error("isl printed no number: maximal number of operations exceeded")
    return int(text)
