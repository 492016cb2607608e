"""The sizes that a prediction is for: what the source and the user say, and what is assumed."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from eatss.isl_names import at_values, integer, parameters_as_dims
from eatss.program_sizes import ProgramSize
from eatss.scops import Scop

ASSUMED_SIZE = 4096
"""Stands for a size that the source leaves open, as far as what is known of it allows."""


def sizes_of(scops: Iterable[Scop]) -> tuple[ProgramSize, ...]:
    """Return the sizes that predictions of some regions are for, by name."""
    found: dict[str, ProgramSize] = {}
    for scop in scops:
        found |= {name: ProgramSize(name=name, value=value) for name, value in scop.size_macros}
        found |= {one.name: one for one in _parameters(scop)}
    return tuple(found.values())


def parameter_values(scop: Scop) -> dict[str, int]:
    """Return the values of all parameters of a region, products of others included."""
    return scop.with_products({one.name: one.value for one in _parameters(scop)})


def _parameters(scop: Scop) -> tuple[ProgramSize, ...]:
    """Return the parameters of a region that have a value, then the others with an assumed one."""
    known = scop.context
    given: list[ProgramSize] = []
    assumed: list[ProgramSize] = []
    for name in scop.sizes:
        least, most = _range(known, name)
        if least is not None and least == most:
            given.append(ProgramSize(name=name, value=least))
    known = at_values(known, [(one.name, one.value) for one in given])
    for name in scop.sizes:
        if name not in {one.name for one in given}:
            least, most = _range(known, name)
            value = ASSUMED_SIZE if most is None else min(ASSUMED_SIZE, most)
            value = value if least is None else max(value, least)
            assumed.append(ProgramSize(name=name, value=value, assumed=True))
            with_it = at_values(known, [(name, value)])
            known = known if with_it.is_empty() else with_it
    return (*given, *assumed)


def _range(known: isl.Set, name: str) -> tuple[int | None, int | None]:
    """Return the least and the greatest value of a parameter, ``None`` where it has no end."""
    line = parameters_as_dims(known, (name,), "size").project_out_all_params()
    ends = line.dim_min_val(0), line.dim_max_val(0)
    least, most = (integer(one) if one.is_int() else None for one in ends)
    return least, most
