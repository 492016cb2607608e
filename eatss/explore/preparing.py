"""``eatss.prepare_sweep``: variants generated into a folder, to be measured elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike

from eatss.diagnostics import input_error
from eatss.explore.campaign import Plan, of_point, of_role
from eatss.explore.generation import Generation, generator_of, made_folder, source_text
from eatss.explore.nouns import Wanted
from eatss.explore.opened_lab import opened_lab
from eatss.explore.options import SweepOptions
from eatss.explore.prepared import Prepared, make_all, write_prepared
from eatss.explore.setting import of_source
from eatss.files import folder_named
from eatss.gpu.this_machine import load_profile
from eatss.notices import Warned, warn_caller
from eatss.python_source.python_scop import PythonScop
from eatss.strategies import WAIT, StrategyJob, make
from eatss.strategies.distinct import Distinct

PREPARES = ("exhaustive", "random", "model")
"""Strategies that need no results."""


def prepare_sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    told: Callable[[int, int], None] = lambda made, wanted: None,
    warned: Warned = warn_caller,
) -> Prepared:
    """Generate the variants of a sweep into a folder, to be measured on another machine.

    Args:
        source: As for :func:`sweep`.
        output: The folder; a new one.
        options: The strategy (``exhaustive``, ``random`` or ``model``) and the budget in variants.
        generation: Who generates them; ``gpu`` is named.
        told: Is told how many of how many are made.
        warned: As of :func:`sweep`.

    Raises:
        InputError: as :func:`sweep`; ``EATSS-W005``, the strategy needs results; ``EATSS-W006``,
            the folder is not empty.
    """
    chosen, made_by = options or SweepOptions(), generation or Generation()
    folder = folder_named(output)
    if chosen.strategy not in PREPARES:
        raise input_error(
            "EATSS-W005",
            f"the strategy '{chosen.strategy}' needs results, and nothing is measured here",
            hint=f"prepare with one of: {', '.join(PREPARES)}",
        )
    if any(made_folder(folder).iterdir()):
        raise input_error("EATSS-W006", f"'{folder}' is not empty", hint="name a new folder")
    with ExitStack() as stack:
        made_by = replace(made_by, keep=folder)
        setting = of_source(source, folder, chosen, made_by, stack, None, ahead=False)
        warned(setting.warnings)
        plan = setting.plan
        wanted = list(_proposed(plan, chosen))
        lab = stack.enter_context(opened_lab(setting, chosen, [], None))
        variants = make_all(lab, wanted, chosen.first, lambda made: told(made, len(wanted)))
    text = source_text(source, made_by.reading)
    prepared = Prepared(
        source=text,
        target=made_by.target,
        generator=generator_of(made_by),
        gpu=load_profile(made_by.gpu).name,
        space=plan.space_text,
        names=plan.space.names,
        varied=plan.varied,
        variants=variants,
    )
    write_prepared(folder, prepared)
    return prepared


def _proposed(plan: Plan, options: SweepOptions) -> Iterator[Wanted]:
    """Yield choices with a role, also at other sizes, then what is proposed, within the budget."""
    most = options.limited.variants or 1000
    yielded = set()
    for role, point in plan.roles:
        wanted = of_role(role, point)
        yielded.add(wanted.variant)
        yield wanted
    for role, sizes in plan.sized_roles[: max(0, most - len(yielded))]:
        wanted = of_role(role, None, sizes)
        yielded.add(wanted.variant)
        yield wanted
    job = StrategyJob(space=plan.space, seed=options.seed, ranked=plan.ranked)
    strategy = Distinct(make(options.strategy, job), plan.decide)
    while len(yielded) < most:
        asked = strategy.ask()
        if asked is None or asked is WAIT:
            return
        wanted = of_point(plan, asked)
        if wanted.variant not in yielded:
            yielded.add(wanted.variant)
            yield wanted
