"""The model's best few candidates, measured on the card, and the one that wins.

Candidates run in a process of their own on data of its own, as ``eatss compare`` runs them, by
turns: a candidate that crashes or hangs costs itself alone.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from eatss.base.cache import key_of
from eatss.base.codec import MisfitError, decode, encode
from eatss.base.diagnostics import EatssError
from eatss.base.forked import in_bounds
from eatss.base.targets import MEASURES
from eatss.lower.recipe import Recipe
from eatss.measurement.api import Interrupted, compared, measured
from eatss.measurement.job import Progress
from eatss.measurement.measurement import Comparison
from eatss.measurement.options import MeasureOptions, Variant
from eatss.program.expression import Sizes
from eatss.session.jit.programs import Maker

_KIND = "tuned"
_MODEL = "model"
"""The candidate that the model puts first."""

START_S = 8.0
"""Seconds to generate, compile and open the card, taken from the time before it is shared out."""

LEAST_S = 4.5
"""Seconds a candidate needs at least: fewer candidates are measured rather than each for less."""

MOST_CANDIDATES = 16


class NotTunedError(Exception):
    """Nothing was measured; the text says why."""


class _TimeIsUpError(KeyboardInterrupt):
    """Measuring ends as it does when the user interrupts: what is done by then counts."""


def tuned(
    maker: Maker,
    sizes: Sizes,
    device: int,
    card_name: str,
    seconds: float,
    card: str | None = None,
) -> Recipe:
    """Return the winner of a class of sizes, measured now or kept from before.

    Args:
        maker: what decides the program.
        sizes: sizes to measure at, by the names of the program.
        device: number of the card as CUDA counts.
        card_name: the card, as it is told apart from others.
        seconds: what measuring may take.
        card: stands in for the card, as for :func:`eatss.compare`.

    Raises:
        NotTunedError: nothing could be measured, so that the model's choice stands.
    """
    deadline_s = time.monotonic() + seconds
    place = maker.kept()
    cache, key = place.cache, key_of(_KIND, place.key, card_name, seconds)
    kept = None if cache is None else cache.get(_KIND, key)
    if kept is not None:
        try:
            found = decode(Recipe, json.loads(kept))
        except (MisfitError, ValueError, RecursionError):
            pass
        else:
            return found
    count = max(2, min(MOST_CANDIDATES, int((seconds - START_S) / LEAST_S)))
    objective = maker.choosing.objective or "energy"
    with tempfile.TemporaryDirectory(prefix="eatss-tune-") as folder:
        try:
            recipes = _candidates(maker, folder, count)
            if len(recipes) < 2:
                raise NotTunedError("the model has no other layout that can be generated")
            budget_s = (deadline_s - time.monotonic()) / len(recipes)
            options = _options(objective, sizes, device, budget_s)
            variants = [Variant(label=one, directory=Path(folder, one)) for one in recipes]
            winner = _winner(_measured(variants, options, deadline_s, card), objective)
        except EatssError as error:
            raise NotTunedError(error.diagnostics[0].message) from error
        except (Interrupted, _TimeIsUpError):
            raise NotTunedError(f"{seconds:g} s were over before it was measured") from None
    if cache is not None:
        cache.put(_KIND, key, json.dumps(encode(recipes[winner])).encode())
    return recipes[winner]


def _options(objective: str, sizes: Sizes, device: int, budget_s: float) -> MeasureOptions:
    """Return how candidates are measured; a time alone needs no update of an energy counter."""
    timing, budget_s = objective == "time", max(1.0, budget_s)
    return MeasureOptions(
        sizes=sizes,
        device=device,
        budget_s=budget_s,
        least_window_s=0.2 if timing else min(1.0, budget_s / 3),
        least_updates=1 if timing else 5,
        least_windows=3,
        warm_up_s=0.5,
        restoring="between windows",  # whether results drift is not what is asked here
        timeout_s=max(10.0, budget_s * MOST_CANDIDATES),
        check=False,  # a callable runs what is generated as it is, whichever candidate it is
    )


def _measured(
    variants: Sequence[Variant], options: MeasureOptions, deadline_s: float, card: str | None
) -> Comparison:
    """Measure candidates by turns until time is up.

    Raises:
        Interrupted: time was up before the model's choice was measured.
        KeyboardInterrupt: the user interrupted.
    """

    def progress(_: Progress) -> None:
        if time.monotonic() > deadline_s:
            raise _TimeIsUpError

    found = measured(variants, options, progress=progress, card=card)
    if found.interrupted and time.monotonic() < deadline_s:
        raise KeyboardInterrupt
    return compared(found, _MODEL)


def _winner(comparison: Comparison, objective: str) -> str:
    """Return the candidate of least cost, the model's own unless another is surely better."""
    rows = [row for row in comparison.rows if row.measurement.status in ("ok", "unstable")]
    if not rows:
        raise NotTunedError(f"no candidate ran: {comparison.rows[0].measurement.status}")
    best, least = _MODEL, 1.0
    for row in rows:
        speedup, energy = row.speedup, row.energy_ratio
        judged = objective if objective in MEASURES else "energy"
        judged = "time" if energy is None else judged
        cost = MEASURES[judged].of(
            None if speedup is None else 1 / speedup.value, None if energy is None else energy.value
        )
        faster = speedup is not None and (speedup.low or 0) > 1
        saves = energy is not None and (energy.high or 2) < 1
        if (faster if judged == "time" else saves) and cost < least:
            best, least = row.measurement.variant, cost
    return best


@in_bounds
def _candidates(maker: Maker, folder: str, count: int) -> dict[str, Recipe]:
    """Generate the model's best layouts: all kernels at their best, then one kernel at another."""
    from eatss.choose.cuda import ranked_cuda  # noqa: PLC0415
    from eatss.lower.variants import kernel_variants_for  # noqa: PLC0415 - most calls tune nothing
    from eatss.session.session import Session  # noqa: PLC0415

    profile, wanted, choosing = maker.profile, maker.wanted, maker.choosing
    assert profile is not None
    session = Session(maker.source, maker.reading, volume=choosing.volume_name(), code=True)
    sized = Session(maker.source, session.reading_at(maker.sizes), code=True)

    how: Any = {"strict_fp": wanted.strict_fp, **wanted.joins}
    selection = apart = sized.select(profile, choosing, **how)
    sized = sized.of(selection)
    options = choosing.for_card(profile)
    variants = kernel_variants_for(
        sized.analysed, profile, strict_fp=wanted.strict_fp, tf32=options.tf32
    )
    if any(one.joined for one in selection.kernels):
        # another layout of one kernel is for kernels that are not one; classes of tiles stay
        in_class = any(one.class_block for one in selection.kernels)
        how |= {"fuse_rows": False, "tile_time": in_class}
        apart = sized.select(profile, choosing, **how)
    in_one = {name for one in apart.kernels for name in one.joined}
    others = []
    for number, (facts, best) in enumerate(zip(sized.analysed.facts, apart.kernels, strict=True)):
        weight = 0.0 if best.predicted is None else best.predicted.energy_j
        if facts.name in in_one:
            continue
        ranked = ranked_cuda(facts, variants.get(facts.name, ()), profile, options, count)
        for rank, other in enumerate(ranked):
            if (other.chosen(), other.references) != (best.chosen(), best.references):
                kernels = (*apart.kernels[:number], other, *apart.kernels[number + 1 :])
                changed = replace(selection, kernels=kernels)
                others.append((rank / max(weight, 1e-300), number, f"{other.name}-{rank}", changed))
    others.sort(key=lambda one: one[:2])
    made = {}
    chosen = [(_MODEL, selection), *(one[2:] for one in others[: count - 1])]
    for label, one in chosen:
        try:
            recipe = session.recipe(one, profile, wanted, choosing.shared_limit_bytes(profile))
            session.write(session.generate(recipe, profile), Path(folder, label))
        except EatssError:  # a layout that the generator refuses is no candidate
            continue
        made[label] = recipe
    return made
