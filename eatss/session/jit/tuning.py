"""The model's best few candidates, measured on the card, and the one that wins.

Candidates run in a process of their own on data of its own, as ``eatss compare`` runs them, by
turns: a candidate that crashes or hangs costs itself alone.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from eatss.base.cache import Cache, key_of
from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import EatssError
from eatss.base.forked import in_bounds
from eatss.base.frozen import frozen
from eatss.base.targets import MEASURES
from eatss.lower.recipe import Recipe
from eatss.measurement.api import Interrupted, compared, measured
from eatss.measurement.card import CompileError
from eatss.measurement.compile import compile_target
from eatss.measurement.cupy_card import CupyCard
from eatss.measurement.job import Progress
from eatss.measurement.measurement import Comparison
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program import load_program
from eatss.session.jit.programs import CodeJob

_KIND = "tuned"
_MODEL = "model"

START_S = 8.0
"""Seconds to generate, compile and open the card, taken from the time before it is shared out."""

LEAST_S = 4.5
"""Seconds a candidate needs at least: fewer candidates are measured rather than each for less."""

MOST_CANDIDATES = 16

_LONGER = 1.5
"""Who gives so many times the time that a winner took to find wants it looked for again."""


@frozen
class Tuned:
    """The winner of a measurement.

    ``label`` says which candidate it is, ``"model"`` the one that the model puts first.
    ``time_ratio`` and ``energy_ratio`` are what it took over what that took, ``None`` where it was
    not measured. ``measured`` are how many candidates were, in
    how many ``seconds``.
    """

    recipe: Recipe
    label: str
    time_ratio: float | None
    energy_ratio: float | None
    measured: int
    seconds: float
    schema_version: int = 1


@frozen
class Candidate:
    """A program to measure: its folder, and the recipe that it was made from."""

    label: str
    folder: str
    recipe: Recipe


def tuned(
    job: CodeJob,
    sizes: Mapping[str, int],
    device: int,
    card_name: str,
    seconds: float,
    cache: Cache | None,
    card: str | CupyCard | None = None,
) -> Tuned:
    """Return the winner of a class of sizes, measured now or kept from before.

    Args:
        job: what decides the program.
        sizes: sizes to measure at, by the names of the program.
        device: number of the card as CUDA counts.
        card_name: the card, as it is told apart from others.
        seconds: what measuring may take.
        cache: where winners are kept.
        card: stands in for the card, as for :func:`eatss.compare`.

    Raises:
        NotTunedError: nothing could be measured, so that the model's choice stands.
    """
    deadline_s = time.monotonic() + seconds
    place = job.kept(cache).key
    key = None if place is None else key_of(_KIND, place, card_name)
    kept = None if cache is None or key is None else cache.get(_KIND, key)
    if kept is not None:
        try:
            found: Tuned = decode(Tuned, json.loads(kept))
        except (MisfitError, ValueError, RecursionError):
            pass
        else:
            if seconds <= _LONGER * found.seconds:
                return found
    count = max(2, min(MOST_CANDIDATES, int((seconds - START_S) / LEAST_S)))
    with tempfile.TemporaryDirectory(prefix="eatss-tune-") as folder:
        try:
            candidates = _candidates(job, folder, count)
            if len(candidates) < 2:
                raise NotTunedError("the model has no other layout that can be generated")
            _compile_ahead(candidates, sizes, device)
            left_s = deadline_s - time.monotonic()
            options = _options(job.choosing.objective, sizes, device, left_s, len(candidates))
            comparison = _measured(candidates, options, deadline_s, card)
        except EatssError as error:
            raise NotTunedError(error.diagnostics[0].message) from error
        except TimeIsUpError:
            raise NotTunedError(f"{seconds:g} s were over before it was measured") from None
    winner = _winner(candidates, comparison, job.choosing.objective or "energy", seconds)
    if cache is not None and key is not None:
        cache.put(_KIND, key, json.dumps(encode(winner)).encode())
    return winner


class NotTunedError(Exception):
    """Nothing was measured; the text says why."""


class TimeIsUpError(KeyboardInterrupt):
    """Measuring ends as it does when the user interrupts: what is done by then counts."""


def _options(
    objective: str | None, sizes: Mapping[str, int], device: int, left_s: float, candidates: int
) -> MeasureOptions:
    """Return how candidates are measured; a time alone needs no update of an energy counter."""
    timing = objective == "time"
    budget_s = max(1.0, left_s / candidates)
    return MeasureOptions(
        sizes=sizes,
        device=device,
        budget_s=budget_s,
        least_window_s=0.2 if timing else min(1.0, budget_s / 3),
        least_updates=1 if timing else 5,
        least_windows=3,
        warm_up_s=0.5,
        restoring="between windows",  # whether results drift is not what is asked here
        timeout_s=max(10.0, left_s),
        check=False,  # a callable runs what is generated as it is, whichever candidate it is
    )


def _measured(
    candidates: Sequence[Candidate],
    options: MeasureOptions,
    deadline_s: float,
    card: str | CupyCard | None,
) -> Comparison:
    """Measure candidates by turns until time is up.

    Raises:
        TimeIsUpError: before the model's choice was measured.
        KeyboardInterrupt: the user interrupted.
    """
    ended = False

    def progress(_: Progress) -> None:
        nonlocal ended
        if time.monotonic() > deadline_s:
            ended = True
            raise TimeIsUpError

    variants = [Variant(label=one.label, directory=Path(one.folder)) for one in candidates]
    found = measured(variants, options, progress=progress, card=card)
    if found.interrupted and not ended:
        raise KeyboardInterrupt
    try:
        return compared(found, _MODEL)
    except Interrupted:
        raise TimeIsUpError from None


def _compile_ahead(candidates: Sequence[Candidate], sizes: Mapping[str, int], device: int) -> None:
    """Compile all candidates at the same time, where measuring finds them then."""
    import cupy  # noqa: PLC0415 - the caller's arrays are on a card

    compiler = compile_target(int(cupy.cuda.Device(device).compute_capability))

    def compile_one(one: Candidate) -> None:
        with suppress(EatssError, CompileError):  # measuring tells of it
            program = load_program(Path(one.folder))
            compiler.compile(program, sizes)

    with ThreadPoolExecutor(min(len(candidates), os.cpu_count() or 1)) as pool:
        list(pool.map(compile_one, candidates))


def _winner(
    candidates: Sequence[Candidate], comparison: Comparison, objective: str, seconds: float
) -> Tuned:
    """Return the candidate of least cost, the model's own unless another is surely better."""
    recipes = {one.label: one.recipe for one in candidates}
    rows = [row for row in comparison.rows if row.measurement.status in ("ok", "unstable")]
    if not rows:
        first = next(iter(comparison.rows)).measurement
        raise NotTunedError(f"no candidate ran: {first.status}")
    best = (_MODEL, 1.0, 1.0, 1.0)
    for row in rows:
        label = row.measurement.variant
        energy, speedup = row.energy_ratio, row.speedup
        time_ratio = None if speedup is None else 1 / speedup.value
        energy_ratio = None if energy is None else energy.value
        surely = {
            "time": speedup is not None and (speedup.low or 0) > 1,
            "energy": energy is not None and (energy.high or 2) < 1,
        }
        judged = objective if objective in MEASURES else "energy"
        judged = "time" if judged == "energy" and energy is None else judged
        cost = MEASURES[judged].of(time_ratio, energy_ratio)
        sure = surely["time" if objective == "time" or energy is None else "energy"]
        if sure and cost < best[1]:
            best = (label, cost, time_ratio or 1.0, energy_ratio or 1.0)
    label = best[0]
    return Tuned(
        recipe=recipes[label],
        label=label,
        time_ratio=best[2],
        energy_ratio=best[3],
        measured=len(rows),
        seconds=seconds,
    )


@in_bounds
def _candidates(job: CodeJob, folder: str, count: int) -> tuple[Candidate, ...]:
    """Generate the model's best layouts: all kernels at their best, then one kernel at another."""
    from eatss.choose.cuda import ranked_cuda  # noqa: PLC0415
    from eatss.lower.variants import kernel_variants_for  # noqa: PLC0415 - most calls tune nothing
    from eatss.session.session import Session  # noqa: PLC0415

    session = Session(job.source, job.reading, volume=job.choosing.volume_name(), code=True)
    sized = Session(job.source, session.reading_at(job.sizes), code=True)
    strict = job.wanted.strict_fp
    fuse = job.wanted.fuse_rows
    selection = sized.select(job.profile, job.choosing, strict_fp=strict, fuse_rows=fuse)
    sized = sized.of(selection)
    options = job.choosing.for_card(job.profile)
    variants = kernel_variants_for(sized.analysed, job.profile, strict_fp=strict, tf32=options.tf32)
    limit = job.choosing.shared_limit_bytes(job.profile)
    apart = selection  # another layout of one kernel is for kernels that are not one
    if any(kernel.row_block is not None for kernel in selection.kernels):
        apart = sized.select(job.profile, job.choosing, strict_fp=strict, fuse_rows=False)
    kernels = apart.kernels
    weight = [0.0 if one.predicted is None else one.predicted.energy_j for one in kernels]
    choices = [(_MODEL, selection)]
    others = [
        (number, rank, other)
        for number, facts in enumerate(sized.analysed.facts)
        for rank, other in enumerate(
            ranked_cuda(facts, variants.get(facts.name, ()), job.profile, options, count)
        )
        if other.chosen() != kernels[number].chosen()
        or other.references != kernels[number].references
    ]
    others.sort(key=lambda one: (one[1] / max(weight[one[0]], 1e-300), one[0]))
    for number, rank, other in others[: count - 1]:
        changed = (*kernels[:number], other, *kernels[number + 1 :])
        label = f"{other.name}-{rank}"
        choices.append((label, replace(selection, kernels=changed)))
    made: list[Candidate] = []
    for label, chosen in choices:
        place = Path(folder) / label
        try:
            recipe = session.recipe(chosen, job.profile, job.wanted, limit)
            session.write(session.generate(recipe, job.profile), place)
        except EatssError:  # a layout that the generator refuses is no candidate
            continue
        made.append(Candidate(label=label, folder=str(place), recipe=recipe))
    return tuple(made)
