"""The search space of a session's program."""

from __future__ import annotations

from eatss.diagnostics import input_error
from eatss.gpu import GpuProfile
from eatss.model.options import SelectOptions
from eatss.session.session import Session
from eatss.space.nouns import Space
from eatss.targets import TARGETS, TargetName


def space_of(session: Session, profile: GpuProfile | None, target: TargetName) -> Space:
    """Return the space that is derived from the kernels of a session.

    Args:
        session: cut for the target.
        profile: the card, which decides how kernels can be cut for ``cuda``; PPCG needs none.
        target: who generates the code.

    Raises:
        InputError: ``EATSS-S022``, no card is named; what reading the source raises.
        NoSolutionError: ``EATSS-S021``, no kernel has sizes to choose.
    """
    from eatss.space.derived import derived_space  # noqa: PLC0415 - needs the model

    if profile is None and TARGETS[target].own:
        raise input_error(
            "EATSS-S022",
            "the space of generated code depends on the card",
            hint="name one: --gpu h200",
        )
    if profile is not None and TARGETS[target].own and session.recomputable:
        session = session.of(session.select(profile, SelectOptions(target="cuda")))
    program, structures = session.analysed, {}
    if profile is not None and TARGETS[target].own:
        from eatss.lower.structures import structures_for  # noqa: PLC0415 - PPCG needs none

        structures = structures_for(program, profile)
    return derived_space(program.facts, structures, profile, target, name=session.name)
