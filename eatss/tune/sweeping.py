"""``eatss.sweep`` and ``eatss.prepare_sweep``: variants of a program, measured or made."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, Warned, input_error, warn_caller
from eatss.base.files import folder_named
from eatss.base.frozen import frozen
from eatss.base.shipped import store_of_ones_own
from eatss.cards.document import profile_to_document
from eatss.cards.this_machine import AUTO, load_profile
from eatss.frontend.python import PythonScop
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.counters import find_ncu
from eatss.measurement.meters.choose import METERS
from eatss.tune.bound import bind
from eatss.tune.campaign import (
    Campaign,
    Plan,
    Prepared,
    is_prepared,
    load_prepared,
    make_all,
    of_point,
    write_prepared,
)
from eatss.tune.document import read_space, space_text
from eatss.tune.generation import (
    Generation,
    generator_of,
    identity_of,
    made_folder,
    ppcg_program,
    source_text,
)
from eatss.tune.jobs import BenchJob, MakerJob, Progress, RolePoint, SweepOptions, Wanted
from eatss.tune.points import Configuration, Space
from eatss.tune.processes import Lab, MakerProcess, PreparedVariants, Workshop
from eatss.tune.rows import Role, Sizes, Sweep
from eatss.tune.store import Store, store_place
from eatss.tune.strategies import STRATEGIES, WAIT, ListedSpace, make

MOST_MAKERS = 14


@frozen
class Setting(Plan):
    """A plan, what makes its variants, and what is to be said of the source."""

    workshop: Callable[[], Workshop]
    warnings: tuple[Diagnostic, ...] = ()


def of_source(
    source: str | PathLike[str] | PythonScop,
    path: Path,
    options: SweepOptions,
    generation: Generation,
    stack: ExitStack,
    card: str | None,
    *,
    ahead: bool = True,
) -> Setting:
    """Return the plan of a sweep of a source, and what makes its variants."""
    from eatss.tune.outline import outlined  # noqa: PLC0415 - prepared variants need no isl

    profile = load_profile(generation.gpu, options.device)
    folder = generation.keep
    if folder is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eatss-sweep-"))
    made_folder(folder)
    major, minor = profile.compute_capability
    space = generation.space
    if space is not None and not isinstance(space, Space):
        space = read_space(space)
    job = MakerJob(
        source=source_text(source, generation.reading),
        target=generation.target,
        profile=json.dumps(profile_to_document(profile)),
        objective="energy" if options.objective == "pareto" else options.objective,
        capability=10 * major + minor if card is None and ahead else 0,
        folder=str(Path(fspath(folder)).absolute()),
        compiler=options.compiler,
        nvcc=options.nvcc,
        ppcg=ppcg_program(generation),
        ppcg_arguments=generation.ppcg_arguments,
    )
    budget = options.limited.variants or 1000
    outline = outlined(job, space, rank=min(2 * budget, 4000))
    bound = bind(outline.space, dict(outline.constants))
    known = dict(outline.parameters)
    varied = tuple(name for name in known if name in bound.names or name in bound.variant)
    generator = generator_of(generation)

    return Setting(
        space=bound,
        decide=bound.decisions,
        ranked=outline.ranked,
        roles=outline.roles,
        options=options,
        identity=partial(
            identity_of,
            source=job.source,
            target=job.target,
            generator=generator,
            varied=varied,
            options=options,
        ),
        path=path,
        space_text=space_text(outline.space),
        keeps=generation.keep is not None,
        varied=varied,
        sized_roles=tuple((role, at) for at in outline.sizes for role, _ in outline.roles),
        workshop=lambda: MakerProcess(job),
        warnings=outline.warnings,
    )


def of_prepared(prepared: Prepared, path: Path, options: SweepOptions, card: str | None) -> Setting:
    """Return the plan of a sweep over prepared variants, and what has them."""
    points: list[Configuration] = []
    roles: list[RolePoint] = []
    sized_roles: list[tuple[Role, Sizes]] = []
    for one in prepared.variants:
        point = dict(one.wanted.values)
        known = set(point) == set(prepared.names)
        if one.wanted.role and one.wanted.decisions:
            sizes = tuple((name, int(value)) for name, value in one.wanted.decisions)
            sized_roles.append((one.wanted.role, sizes))
        elif one.wanted.role:
            roles.append((one.wanted.role, point if known else None))
        elif known:
            points.append(point)
    made = {one.wanted.variant: one.made for one in prepared.variants}
    proposed_by = {one.wanted.variant: one.wanted.strategy for one in prepared.variants}

    def workshop() -> Workshop:
        if card is not None:
            return PreparedVariants(made=made, compiler=None)
        profile = load_profile(AUTO, options.device)
        major, minor = profile.compute_capability
        return PreparedVariants.on(made, 10 * major + minor)

    return Setting(
        space=ListedSpace(prepared.names, points),
        decide=lambda point: point,
        ranked=tuple(points),
        roles=tuple(roles),
        options=options,
        identity=partial(
            identity_of,
            source=prepared.source,
            target=prepared.target,
            generator=prepared.generator,
            varied=prepared.varied,
            options=options,
        ),
        path=path,
        space_text=prepared.space,
        keeps=True,
        varied=prepared.varied,
        sized_roles=tuple(sized_roles),
        proposed_by=proposed_by,
        workshop=workshop,
    )


@contextmanager
def opened_lab(setting: Setting, bench: BenchJob | None) -> Iterator[Lab]:
    """Yield where variants are made and, given a card, measured."""
    makers = setting.options.makers or max(1, min(MOST_MAKERS, (os.cpu_count() or 2) - 1))
    lab = Lab(setting.workshop, makers, bench)
    try:
        yield lab
    finally:
        lab.close()


def sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    progress: Callable[[Progress], None] | None = None,
    card: str | None = None,
    warned: Warned = warn_caller,
) -> Sweep:
    """Measure variants of a program and keep each in a store; go on where a store stopped.

        eatss.sweep("gemm.c", output="gemm.db", options=SweepOptions(strategy="random"))

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C text, loops in Python, or a
            folder of :func:`prepare_sweep`.
        output: The file of the store; it is made, or gone on with.
        options: How the sweep goes.
        generation: Who generates variants; not for a folder that was prepared.
        progress: Is called with how far it is, in this thread.
        card: Import path of what stands in for the card, ``MODULE:NAME``.
        warned: Is told what is hardly meant so in the source; by default as ``EatssWarning``.

    Returns:
        All of the store.

    Raises:
        InputError: the source, the space or an option is wrong; there is no card; the store is of
            something else.
        NoSolutionError: no tile sizes satisfy the limits of the card, or the space is empty.
        KeyboardInterrupt: the user interrupted; the store has all that was measured.
    """
    chosen, made_by = options or SweepOptions(), generation or Generation()
    path = store_of_ones_own(output)
    _check_place(path)
    METERS.get(chosen.meter)
    STRATEGIES.get(chosen.strategy.partition(":")[0])
    if chosen.counters:
        find_ncu()
    with ExitStack() as stack:
        if (
            isinstance(source, str | PathLike)
            and "\n" not in fspath(source)
            and is_prepared(source)
        ):
            setting = of_prepared(load_prepared(Path(source)), path, chosen, card)
        else:
            setting = of_source(source, path, chosen, made_by, stack, card)
        warned(setting.warnings)
        make(chosen.strategy, setting.job).close()  # before anything is measured
        lab = stack.enter_context(opened_lab(setting, _bench(chosen, card)))
        Campaign(setting, lab, progress).run()
    return Store.read(path)


def _bench(options: SweepOptions, card: str | None) -> BenchJob:
    return BenchJob(
        card=card or CUPY_CARD,
        device=options.device,
        compiler=options.compiler,
        nvcc=options.nvcc,
        meter=options.meter,
        seed=options.seed,
        timeout_s=options.timeout_s,
        compares=options.compares,
    )


def _check_place(path: Path) -> None:
    """Refuse a store that cannot be written before anything is made.

    Raises:
        InputError: ``EATSS-D0xx``.
    """
    place = store_place(path)
    if place.exists():
        Store.read(place, measurements=False)
    if not os.access(place if place.exists() else place.parent, os.W_OK):
        raise input_error(
            "EATSS-D005", f"the store '{place}' may not be written", hint="name another file"
        )


PREPARES = ("exhaustive", "random", "model")
"""Strategies that need no results."""


def prepare_sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    progress: Callable[[int, int], None] = lambda made, wanted: None,
    warned: Warned = warn_caller,
) -> Prepared:
    """Generate the variants of a sweep into a folder, to be measured on another machine.

    Args:
        source: As for :func:`sweep`.
        output: The folder; a new one.
        options: The strategy (``exhaustive``, ``random`` or ``model``) and the budget in variants.
        generation: Who generates them; ``gpu`` is named.
        progress: Hears how many of how many are made.
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
        wanted = list(_proposed(setting, chosen))
        lab = stack.enter_context(opened_lab(setting, None))
        variants = make_all(lab, wanted, chosen.first, lambda made: progress(made, len(wanted)))
    text = source_text(source, made_by.reading)
    prepared = Prepared(
        source=text,
        target=made_by.target,
        generator=generator_of(made_by),
        gpu=load_profile(made_by.gpu).name,
        space=setting.space_text,
        names=setting.space.names,
        varied=setting.varied,
        variants=variants,
    )
    write_prepared(folder, prepared)
    return prepared


def _proposed(plan: Plan, options: SweepOptions) -> Iterator[Wanted]:
    """Yield choices with a role, also at other sizes, then what is proposed, within the budget."""
    most = options.limited.variants or 1000
    yielded = set()
    for wanted in plan.choices[: max(len(plan.roles), most)]:
        yielded.add(wanted.variant)
        yield wanted
    strategy = make(options.strategy, plan.job, decide=plan.decide)
    while len(yielded) < most:
        asked = strategy.ask()
        if asked is None or asked is WAIT:
            return
        wanted = of_point(plan, asked)
        if wanted.variant not in yielded:
            yielded.add(wanted.variant)
            yield wanted
