"""C spellings of literals."""

from __future__ import annotations

import struct

from eatss.frontend.tree import Node
from eatss.scops import ElementType

_SUFFIXES = {
    ElementType.UINT32: "u",
    ElementType.INT64: "L",
    ElementType.UINT64: "UL",
}


def literal_text(node: Node, element: ElementType, written: str) -> str:
    """Return a C spelling of a literal: as written where it stands there, else from its value."""
    if element.is_floating:
        assert isinstance(node.value, float)
        if _spells(written, node.value, element):
            return written
        return _floating_text(node.value, element)
    value = int(node.value or 0)
    return f"{value}{_SUFFIXES.get(element, '')}"


def _spells(written: str, value: float, element: ElementType) -> bool:
    is_float = written[-1:] in ("f", "F") and not written.lower().startswith("0x")
    digits = written[:-1] if is_float else written
    if is_float != (element is ElementType.FLOAT):
        return False
    try:
        known = float(digits)
    except ValueError:
        return False
    if is_float:
        known = struct.unpack("f", struct.pack("f", known))[0]
    return known == value and not digits.strip().startswith(("n", "i", "-", "+"))


def _floating_text(value: float, element: ElementType) -> str:
    if element is ElementType.DOUBLE:
        return repr(value)
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            break
    if not any(c in text for c in ".en"):
        text += ".0"
    return text + "f"
