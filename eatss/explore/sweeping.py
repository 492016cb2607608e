"""``eatss.sweep``: a program, a card and a space in; a store with a row a variant out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from os import PathLike, fspath
from pathlib import Path

from eatss.diagnostics import input_error
from eatss.explore.campaign import Campaign, Plan
from eatss.explore.generation import Generation
from eatss.explore.nouns import BenchJob, Progress
from eatss.explore.opened_lab import opened_lab
from eatss.explore.options import SweepOptions
from eatss.explore.prepared import is_prepared, load_prepared
from eatss.explore.setting import of_prepared, of_source
from eatss.extensions import Origin
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.counters import find_ncu
from eatss.measurement.meters.choose import METERS
from eatss.notices import Warned, warn_caller
from eatss.python_source.python_scop import PythonScop
from eatss.shipped import store_of_ones_own
from eatss.store.nouns import Sweep
from eatss.store.opening import no_folder, real_path
from eatss.store.store import Store
from eatss.store.writer_lock import lock_for_writing
from eatss.strategies import STRATEGIES, StrategyJob, make


def sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    progress: Callable[[Progress], None] | None = None,
    card: str | None = None,
    scheduler: str | None = None,
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
        scheduler: Address of a Dask scheduler (``tcp://head:8786``) whose workers make and measure,
            or ``"local"`` for a cluster on this machine with one worker a card.
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
    _check_options(chosen)
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
        _try_strategy(setting.plan)
        benches = [_bench(chosen, device, card) for device in chosen.devices]
        lab = stack.enter_context(opened_lab(setting, chosen, benches, scheduler))
        Campaign(setting.plan, lab, progress).run()
    return Store.read(path)


def _bench(options: SweepOptions, device: int | str, card: str | None) -> BenchJob:
    origin: Origin | None = METERS.origin(options.meter)
    return BenchJob(
        card=card or CUPY_CARD,
        device=device,
        compiler=options.compiler,
        nvcc=options.nvcc,
        meter=options.meter,
        meter_origin=origin,
        seed=options.seed,
        timeout_s=options.timeout_s,
        compares=options.compares,
    )


def _check_options(options: SweepOptions) -> None:
    """Refuse what would be found out after variants were made.

    Raises:
        InputError: ``EATSS-X005`` there is no such strategy; ``EATSS-W002`` a card is named twice.
    """
    STRATEGIES.get(options.strategy.partition(":")[0])
    if len(set(options.devices)) < len(options.devices):
        raise input_error("EATSS-W002", "a card is named twice", hint="name each card once")


def _try_strategy(plan: Plan) -> None:
    """Refuse a strategy that cannot be made, before anything is measured.

    Raises:
        InputError: ``EATSS-T0xx``.
    """
    job = StrategyJob(space=plan.space, seed=plan.options.seed, ranked=plan.ranked)
    make(plan.options.strategy, job).close()


def _check_place(path: Path) -> None:
    """Refuse a store that cannot be written before anything is made.

    Raises:
        InputError: ``EATSS-D0xx``.
    """
    place = real_path(path)
    if not place.parent.is_dir():
        raise no_folder(place)
    lock_for_writing(place).release()
    if place.exists():
        Store.read(place, measurements=False)
