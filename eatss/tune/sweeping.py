"""``eatss.sweep``: variants of a program, made, measured and kept."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from eatss.base.diagnostics import Warned, input_error, warn_caller
from eatss.base.files import StrPath
from eatss.base.shipped import store_of_ones_own
from eatss.cards.this_machine import load_profile
from eatss.frontend.python import SourceLike
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.counters import find_ncu
from eatss.measurement.job import Bench
from eatss.measurement.meters.choose import METERS
from eatss.tune.campaign import Campaign, Plan
from eatss.tune.document import read_space
from eatss.tune.generation import (
    Generation,
    generator_of,
    identity_of,
    made_folder,
    ppcg_program,
    source_text,
)
from eatss.tune.jobs import MakerJob, OnProgress, SweepOptions
from eatss.tune.outline import outlined
from eatss.tune.points import Space
from eatss.tune.processes import Runner
from eatss.tune.rows import Sweep
from eatss.tune.store import Store, store_place
from eatss.tune.strategies import STRATEGIES, make

MOST_MAKERS = 14


def sweep(
    source: SourceLike,
    *,
    output: StrPath,
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    progress: OnProgress = None,
    card: str | None = None,
    warned: Warned = warn_caller,
) -> Sweep:
    """Measure variants of a program and keep each in a store; go on where a store stopped.

        eatss.sweep("gemm.c", output="gemm.db", options=SweepOptions(strategy="random"))

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C text, or loops in Python.
        output: The file of the store; it is made, or gone on with.
        options: How the sweep goes.
        generation: Who generates variants.
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
    STRATEGIES.get(chosen.strategy)
    if chosen.counters:
        find_ncu()
    with ExitStack() as stack:
        profile = load_profile(made_by.gpu, chosen.device)
        folder = made_by.keep
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eatss-sweep-"))
        job = MakerJob(
            source=source_text(source),
            reading=made_by.reading,
            target=made_by.target,
            profile=profile,
            objective=chosen.objective,
            capability=0 if card else profile.sm,
            folder=str(made_folder(folder).absolute()),
            compiler=chosen.compiler,
            nvcc=chosen.nvcc,
            ppcg=ppcg_program(made_by),
            ppcg_arguments=made_by.ppcg_arguments,
        )
        plan = _plan(job, path, chosen, made_by, warned)
        make(chosen.strategy, plan.job)  # before anything is measured
        makers = chosen.makers or max(1, min(MOST_MAKERS, (os.cpu_count() or 2) - 1))
        bench = Bench(card=card or CUPY_CARD, options=chosen.measuring)
        runner = stack.enter_context(closing(Runner(job, makers, bench)))
        Campaign(plan, runner, progress).run()
    return Store.read(path)


def _plan(
    job: MakerJob, path: Path, options: SweepOptions, generation: Generation, warned: Warned
) -> Plan:
    space = generation.space
    if space is not None and not isinstance(space, Space):
        space = read_space(space)
    budget = options.limited.variants or 1000
    generator = generator_of(generation)
    outline = outlined(job, space, rank=min(2 * budget, 4000))
    warned(outline.warnings)
    return Plan(
        outline=outline,
        options=options,
        identity=lambda found: identity_of(found, job, generator, options),
        path=path,
        keeps=generation.keep is not None,
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
