"""What is known about the parameters of a region before it runs."""

from __future__ import annotations

from contextlib import suppress

import islpy as isl

from eatss.frontend.affine import AffineReader
from eatss.frontend.refusals import NotAffineError
from eatss.frontend.symbols import SymbolTable
from eatss.frontend.tree import Node
from eatss.frontend.values import NonLinearError, Poly


def known_facts(
    symbols: SymbolTable, affine: AffineReader, macros: frozenset[str] = frozenset()
) -> isl.Set:
    """Return what C says of the parameters.

    Parameters of types narrower than ``int`` lie in the range of their type, and unsigned ones are
    not negative. The sizes of a variable-length array are greater than
    zero where they are evaluated (C99 6.7.6.2p5); the outermost size of a parameter is
    left out, since such a parameter is a pointer. What is declared before the region, in a block
    around it, has been evaluated whenever the region runs. A size that names nothing but
    ``macros`` is a number in the program, and a number may be zero.
    """
    algebra = affine.algebra
    facts = algebra.everywhere
    for variable in symbols.variables:
        element = variable.shape.element
        if variable.role == "parameter":
            unknown = Poly.unknown(variable.unique_name)
            if variable.constant is None and (element.bits < 32 or not element.signed):
                facts = facts.intersect(algebra.at_least(unknown, element.minimum))
            if variable.constant is None and element.bits < 32:
                facts = facts.intersect(algebra.at_least(element.maximum, unknown))
            continue
        if variable.is_local:
            continue  # its size is not evaluated before the region, if ever
        sizes = variable.shape.sizes
        for size in sizes[1:] if variable.shape.through_pointer else sizes:
            names = {n.name for n in size.parts("name")} if isinstance(size, Node) else set[str]()
            if isinstance(size, Node) and not (names and names <= macros):
                with suppress(NotAffineError, NonLinearError):
                    facts = facts.intersect(algebra.at_least(affine.value(size, facts), 1))
    return facts


def fixed_values(values: tuple[tuple[str, int], ...], affine: AffineReader) -> isl.Set:
    """Return the parameter values the user gave, as a set."""
    algebra = affine.algebra
    fixed = algebra.everywhere
    for name, value in values:
        fixed = fixed.intersect(algebra.equal(Poly.unknown(name), value))
    return fixed
