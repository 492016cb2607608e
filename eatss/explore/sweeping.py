"""``eatss.sweep``: a program, a card and a space in; a store with a row a variant out."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path

from eatss.cache import key_of
from eatss.diagnostics import input_error
from eatss.explore.campaign import Campaign, Plan, of_point, of_role
from eatss.explore.identity import generator_version, identity_of
from eatss.explore.lab import Done, Lab, LocalLab
from eatss.explore.maker_process import MakerProcess, PreparedVariants, Workshop
from eatss.explore.nouns import BenchJob, MakerJob, Progress, SourceText, Wanted
from eatss.explore.options import SweepOptions
from eatss.explore.prepared import (
    Prepared,
    is_prepared,
    load_prepared,
    make_all,
    write_prepared,
)
from eatss.extensions import Origin
from eatss.files import folder_named
from eatss.frontend.options import Reading
from eatss.gpu import GpuProfile
from eatss.gpu.document import profile_to_document
from eatss.gpu.this_machine import AUTO, profile_for
from eatss.measurement.api import CUPY_CARD
from eatss.measurement.counters import find_ncu
from eatss.measurement.meters.choose import METERS
from eatss.point import Value
from eatss.ppcg_build.run import find_ppcg
from eatss.python_source.python_scop import PythonScop, c_source
from eatss.space.bound import bind
from eatss.space.document import read_space, space_text
from eatss.space.nouns import Space
from eatss.store.nouns import Identity, Role, Sweep, Target
from eatss.store.opening import no_folder, real_path
from eatss.store.store import Store
from eatss.store.writer_lock import lock_for_writing
from eatss.strategies import STRATEGIES, WAIT, ListedSpace, StrategyJob, make

MOST_MAKERS = 14
PREPARES = ("exhaustive", "random", "model")
"""Strategies that need no results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """Who generates variants, and of what.

    Attributes:
        gpu: ``"auto"`` for the card in this machine, the name of a profile, the path of one, or a
            profile.
        target: ``"cuda"`` for code of eatss, ``"ppcg"`` for PPCG's.
        space: Path of a space in TOML, or a space; ``None`` derives one from the program.
        reading: How the source is read.
        ppcg: PPCG, a command or a path.
        ppcg_arguments: Further arguments of it.
        keep: A folder that keeps the programs.
    """

    gpu: str | PathLike[str] | GpuProfile = AUTO
    target: Target = "cuda"
    space: str | PathLike[str] | Space | None = None
    reading: Reading = Reading()  # noqa: RUF009 - it is frozen
    ppcg: str | PathLike[str] | None = None
    ppcg_arguments: tuple[str, ...] = ()
    keep: str | PathLike[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Setting:
    """A plan, and what makes its variants; ``job`` is ``None`` where they were made before."""

    plan: Plan
    workshop: Callable[[], Workshop]
    job: MakerJob | None


def sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    progress: Callable[[Progress], None] | None = None,
    card: str | None = None,
    scheduler: str | None = None,
) -> Sweep:
    """Measure variants of a program and keep each in a store; go on where a store stopped.

        eatss.sweep("gemm.c", output="gemm.db", options=SweepOptions(strategy="random"))

    Args:
        source: Path of a C file, its text, loops in Python, or a folder of :func:`prepare_sweep`.
        output: The file of the store; it is made, or gone on with.
        options: How the sweep goes.
        generation: Who generates variants; not for a folder that was prepared.
        progress: Is called with how far it is, in this thread.
        card: Import path of what stands in for the card, ``MODULE:NAME``.
        scheduler: Address of a Dask scheduler (``tcp://head:8786``) whose workers make and measure,
            or ``"local"`` for a cluster on this machine with one worker a card.

    Returns:
        All of the store.

    Raises:
        InputError: the source, the space or an option is wrong; there is no card; the store is of
            something else.
        NoSolutionError: no tile sizes satisfy the limits of the card, or the space is empty.
        KeyboardInterrupt: the user interrupted; the store has all that was measured.
    """
    chosen, made_by = options or SweepOptions(), generation or Generation()
    path = Path(fspath(output))
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
            setting = _of_prepared(load_prepared(Path(source)), path, chosen, card)
        else:
            setting = _of_source(source, path, chosen, made_by, stack, card)
        _try_strategy(setting.plan)
        benches = [_bench(chosen, device, card) for device in chosen.devices]
        lab = stack.enter_context(_lab(setting, chosen, benches, scheduler))
        Campaign(setting.plan, lab, progress).run()
    return Store.read(path)


def prepare_sweep(
    source: str | PathLike[str] | PythonScop,
    *,
    output: str | PathLike[str],
    options: SweepOptions | None = None,
    generation: Generation | None = None,
    told: Callable[[int, int], None] = lambda made, wanted: None,
) -> Prepared:
    """Generate the variants of a sweep into a folder, to be measured on another machine.

    Args:
        source: As for :func:`sweep`.
        output: The folder; a new one.
        options: The strategy (``exhaustive``, ``random`` or ``model``) and the budget in variants.
        generation: Who generates them; ``gpu`` is named.
        told: Is told how many of how many are made.

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
    _check_options(chosen)
    if any(_own_folder(folder).iterdir()):
        raise input_error("EATSS-W006", f"'{folder}' is not empty", hint="name a new folder")
    with ExitStack() as stack:
        made_by = replace(made_by, keep=folder)
        setting = _of_source(source, folder, chosen, made_by, stack, None, ahead=False)
        plan = setting.plan
        wanted = list(_proposed(plan, chosen))
        lab = stack.enter_context(_lab(setting, chosen, [], None))
        variants = make_all(lab, wanted, chosen.first, lambda made: told(made, len(wanted)))
    text = _source_text(source, made_by.reading)
    prepared = Prepared(
        source=text,
        target=made_by.target,
        generator=_generator(made_by),
        gpu=profile_for(made_by.gpu).name,
        space=plan.space_text,
        names=plan.space.names,
        varied=plan.varied,
        variants=variants,
    )
    write_prepared(folder, prepared)
    return prepared


def _of_source(
    source: str | PathLike[str] | PythonScop,
    path: Path,
    options: SweepOptions,
    generation: Generation,
    stack: ExitStack,
    card: str | None,
    *,
    ahead: bool = True,
) -> _Setting:
    """Return the plan of a sweep of a source, and what makes its variants."""
    from eatss.explore.outline import outlined  # noqa: PLC0415 - prepared variants need no isl

    profile = profile_for(generation.gpu, options.devices[0])
    folder = generation.keep
    if folder is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eatss-sweep-"))
    _own_folder(folder)
    major, minor = profile.compute_capability
    space = generation.space
    if space is not None and not isinstance(space, Space):
        space = read_space(space)
    job = MakerJob(
        source=_source_text(source, generation.reading),
        target=generation.target,
        profile=json.dumps(profile_to_document(profile)),
        objective="energy" if options.objective == "pareto" else options.objective,
        capability=10 * major + minor if card is None and ahead else 0,
        folder=str(Path(fspath(folder)).absolute()),
        compiler=options.compiler,
        ppcg=_ppcg(generation),
        ppcg_arguments=generation.ppcg_arguments,
    )
    budget = options.limited.variants or 1000
    outline = outlined(job, space, rank=min(2 * budget, 4000))
    job = replace(job, choices=outline.choices)
    bound = bind(outline.space, dict(outline.constants))
    known = dict(outline.parameters)
    varied = tuple(name for name in known if name in bound.names or name in bound.variant)
    generator = _generator(generation)

    def identity(done: Done) -> Identity:
        return identity_of(done, job.source, job.target, generator, varied, options)

    plan = Plan(
        space=bound,
        decide=bound.decisions,
        ranked=outline.ranked,
        roles=outline.roles,
        options=options,
        identity=identity,
        path=path,
        space_text=space_text(outline.space),
        keeps=generation.keep is not None,
        varied=varied,
        sizes=outline.sizes,
    )
    return _Setting(plan=plan, workshop=lambda: MakerProcess(job), job=job)


def _of_prepared(
    prepared: Prepared, path: Path, options: SweepOptions, card: str | None
) -> _Setting:
    """Return the plan of a sweep over prepared variants, and what has them."""
    points: list[dict[str, Value]] = []
    roles: list[tuple[Role, dict[str, Value] | None]] = []
    for one in prepared.variants:
        point = dict(one.wanted.values)
        known = set(point) == set(prepared.names)
        if one.wanted.role:
            roles.append((one.wanted.role, point if known else None))
        elif known:
            points.append(point)
    made = {one.wanted.variant: one.made for one in prepared.variants}

    def identity(done: Done) -> Identity:
        source, target = prepared.source, prepared.target
        return identity_of(done, source, target, prepared.generator, prepared.varied, options)

    def workshop() -> Workshop:
        if card is not None:
            return PreparedVariants(made=made, capability=0, toolchains=())
        profile = profile_for(AUTO, options.devices[0])
        major, minor = profile.compute_capability
        return PreparedVariants.on(made, 10 * major + minor)

    plan = Plan(
        space=ListedSpace(prepared.names, points),
        decide=lambda point: point,
        ranked=tuple(points),
        roles=tuple(roles),
        options=options,
        identity=identity,
        path=path,
        space_text=prepared.space,
        keeps=True,
        varied=prepared.varied,
    )
    return _Setting(plan=plan, workshop=workshop, job=None)


def _proposed(plan: Plan, options: SweepOptions) -> Iterator[Wanted]:
    """Yield choices with a role, then what the strategy proposes, within the budget."""
    most = options.limited.variants or 1000
    yielded = set()
    for role, point in plan.roles:
        wanted = of_role(role, point)
        yielded.add(wanted.variant)
        yield wanted
    job = StrategyJob(space=plan.space, seed=options.seed, ranked=plan.ranked)
    strategy = make(options.strategy, job)
    while len(yielded) < most:
        asked = strategy.ask()
        if asked is None or asked is WAIT:
            return
        wanted = of_point(plan, asked)
        if wanted.variant not in yielded:
            yielded.add(wanted.variant)
            yield wanted


@contextmanager
def _lab(
    setting: _Setting,
    options: SweepOptions,
    benches: Sequence[BenchJob],
    scheduler: str | None,
) -> Iterator[Lab]:
    makers = options.makers or max(1, min(MOST_MAKERS, (os.cpu_count() or 2) - 1))
    if scheduler is not None:
        from eatss.explore.cluster import cluster_lab  # noqa: PLC0415 - Dask is an extra

        plan, job = setting.plan, setting.job
        name = f"eatss-{key_of(*_what(plan, job, options))[:16]}"
        with cluster_lab(setting.workshop, job, name, benches, makers, scheduler) as found:
            yield found
        return
    lab = LocalLab(setting.workshop, makers, benches)
    try:
        yield lab
    finally:
        lab.close()


def _what(plan: Plan, job: MakerJob | None, options: SweepOptions) -> tuple[object, ...]:
    """Return what tells a sweep from all others, the same in every session of it."""
    made_of: object = None
    if job is not None:
        text = job.source.source
        content = text if "\n" in text else _source_bytes(text)
        made_of = (replace(job, folder="", choices=()), content)
    measured = (options.seed, options.meter, options.timeout_s, options.compares)
    return (plan.path.absolute(), plan.space_text, made_of, *measured, options.objective)


def _source_bytes(source: str) -> bytes:
    """Return the text of a file that may have a function's name after it."""
    file, python, _ = source.rpartition(".py:")
    return Path(file + ".py" if python else source).read_bytes()


def _bench(options: SweepOptions, device: int | str, card: str | None) -> BenchJob:
    origin: Origin | None = METERS.origin(options.meter)
    return BenchJob(
        card=card or CUPY_CARD,
        device=device,
        compiler=options.compiler,
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


def _own_folder(path: str | PathLike[str]) -> Path:
    """Make a folder for programs.

    Raises:
        InputError: ``EATSS-W022``, it cannot be made.
    """
    folder = folder_named(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise input_error(
            "EATSS-W022",
            f"the folder '{folder}' cannot be made: {error.strerror}",
            hint="name another folder",
        ) from None
    return folder


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


def _source_text(source: str | PathLike[str] | PythonScop, reading: Reading) -> SourceText:
    """Return a source as other processes can read it; loops in Python that are no file's are C."""
    if isinstance(source, str | PathLike):
        text = fspath(source)
        known = text if "\n" in text else str(Path(text).absolute())
    else:
        known = fspath(c_source(source))
    return SourceText.of(known, reading)


def _ppcg(generation: Generation) -> str | None:
    return find_ppcg(generation.ppcg) if generation.target == "ppcg" else None


def _generator(generation: Generation) -> str:
    """Return the version of who generates."""
    program = _ppcg(generation)
    if program is None:
        return generator_version()
    said = subprocess.run(  # noqa: S603
        [program, "--version"], capture_output=True, text=True, timeout=60, check=False
    ).stdout
    lines = [line.strip() for line in said.splitlines()]
    version = next((line for line in lines if line.startswith("ppcg")), "PPCG")
    return " ".join((version, *generation.ppcg_arguments))
