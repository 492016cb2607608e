"""Made-up sweeps that look like real ones: roles, failures, two cards, metrics, sizes.

Nothing of it was measured. A simple model gives every variant a time and a power from its tile
sizes; noise, cards and drift are drawn from a seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from eatss.measurement.measurement import Status
from eatss.tune.points import Point, Value, variant_key
from eatss.tune.rows import CardSeen, Identity, Role, Row, Stage, Sweep

CARDS = ("GPU-aaaaaaaa-1111", "GPU-bbbbbbbb-2222")
SPACE = 'name = "gemm"\n[iterators]\ntile_i = [8, 16, 32, 64, 128]\n'


def sweep(
    *,
    variants: int = 300,
    seed: int = 0,
    program: str = "gemm",
    cards: int = 1,
    card_factor: float = 1.03,
    drift: float = 0.004,
    references: int = 12,
    size: int = 2000,
    roles: bool = True,
    failing: float = 0.12,
    careful: int = 12,
    metrics: bool = True,
    energy: bool = True,
    splits: bool = True,
) -> Sweep:
    """Return a made-up sweep of a matrix product.

    ``card_factor`` is what the second card takes over the first, in time and in energy; ``drift``
    is how much both change, relatively, over the sweep. ``failing`` is the share that fails.
    """
    random = np.random.default_rng(seed)
    rows: list[Row] = []
    points = _points(variants, random, splits)
    every = max(1, len(points) // references) if references else len(points) + 1
    for number, point in enumerate(points):
        card = number % cards
        at_s = 3.0 * (number + 1)
        scale = _scale(card, card_factor, drift, number / len(points), random)
        made = _row(point, size, CARDS[card], at_s, scale, random)
        if random.random() < failing:
            made = _failed(made, random)
        rows.append(made)
        if references and number % every == 0:
            for other in range(cards):
                scale = _scale(other, card_factor, drift, number / len(points), random)
                rows.append(
                    _row(_point(32, 32, 32, 8, 32), size, CARDS[other], at_s, scale, random)
                )
                rows[-1] = replace(rows[-1], stage="reference", strategy="")
    at_s = 3.0 * len(points)
    chosen: list[tuple[Role, dict[str, Value]]] = [
        ("default", _point(32, 32, 32, 8, 32)),
        ("paper", _point(16, 128, 16, 8, 32, 0.5)),
        ("ours", _point(64, 64, 16, 16, 16)),
    ]
    if roles:
        for role, point in chosen:
            at_s += 3.0
            scale = _scale(0, card_factor, drift, 1.0, random)
            rows.append(replace(_row(point, size, CARDS[0], at_s, scale, random), role=role))
    best = sorted(
        (r for r in rows if r.measured and r.stage == "first"), key=lambda r: r.energy_j or 0.0
    )
    for again in best[:careful]:
        at_s += 9.0
        noise = float(random.normal(1, 0.002))
        assert again.time_s is not None
        assert again.energy_j is not None
        rows.append(
            replace(
                again, stage="careful", at_s=at_s, time_s=again.time_s * noise,
                energy_j=again.energy_j * noise, time_error=0.001, energy_error=0.004,
            )
        )  # fmt: skip
    rows = [_without(row, metrics=metrics, energy=energy) for row in rows]
    return Sweep(
        identity=identity(program),
        space=SPACE,
        cards=tuple(_card(uuid) for uuid in CARDS[:cards]),
        rows=tuple(rows),
    )


def identity(program: str = "gemm") -> Identity:
    return Identity(
        program=program,
        source_hash="0" * 64,
        target="cuda",
        generator="0.1.0",
        dtype="double",
        defines=(),
        sizes=(),
        card="NVIDIA H200",
        driver="580.00",
        compiler="nvrtc 13.0",
        options="1" * 64,
    )


def row(
    number: int,
    time_s: float | None,
    energy_j: float | None = None,
    *,
    stage: Stage = "first",
    role: Role = "",
    status: Status = "ok",
    card: str = CARDS[0],
    at_s: float = 0.0,
    flops: int | None = 2_000_000_000,
    metrics: tuple[tuple[str, float], ...] = (),
    values: tuple[tuple[str, Value], ...] | None = None,
    sizes: tuple[tuple[str, int], ...] = (),
    reason: str = "",
) -> Row:
    """Return one row with what a test is about."""
    point: tuple[tuple[str, Value], ...] = (("x", number),) if values is None else values
    return Row(
        variant=variant_key(dict(point)),
        values=point,
        status=status,
        stage=stage,
        role=role,
        card=card,
        time_s=time_s,
        energy_j=energy_j,
        flops=flops,
        at_s=at_s,
        metrics=metrics,
        sizes=sizes,
        reason=reason,
    )


def of_rows(rows: Sequence[Row], cards: Sequence[str] = CARDS[:1]) -> Sweep:
    """Return a sweep of given rows."""
    return Sweep(identity=identity(), space=SPACE, cards=tuple(map(_card, cards)), rows=tuple(rows))


def _card(uuid: str) -> CardSeen:
    return CardSeen(
        uuid=uuid, name="NVIDIA H200", host="node1", compute_capability=90, power_limit_w=700.0
    )


def _point(
    tile_i: int, tile_j: int, tile_k: int, threads_i: int, threads_j: int, split: float = 0.0
) -> dict[str, Value]:
    return {
        "tile_i": tile_i, "tile_j": tile_j, "tile_k": tile_k,
        "threads_i": threads_i, "threads_j": threads_j,
        "split": split, "warp_fraction": 0.5 if split else 1.0,
    }  # fmt: skip


def _points(count: int, random: np.random.Generator, splits: bool) -> list[dict[str, Value]]:
    tiles = (8, 16, 32, 64, 128, 256)
    kinds = (0.0, 0.5, 0.67) if splits else (0.0,)
    every = [
        _point(i, j, k, ti, tj, split)
        for i, j, k, ti, tj, split in product(
            tiles, tiles, (4, 8, 16, 32, 64), (4, 8, 16), (16, 32), kinds
        )
        if ti <= i and tj <= j
    ]
    order = random.permutation(len(every))[: max(0, count)]
    return [every[k] for k in order]


def _scale(
    card: int, factor: float, drift: float, share: float, random: np.random.Generator
) -> float:
    return (factor if card else 1.0) * (1 + drift * share) * float(random.normal(1, 0.001))


def _row(
    point: Point, n: int, card: str, at_s: float, scale: float, random: np.random.Generator
) -> Row:
    i, j, k, ti, tj = (
        int(point[name]) for name in ("tile_i", "tile_j", "tile_k", "threads_i", "threads_j")
    )
    split = float(point["split"])
    threads, registers = ti * tj, min(255, 24 + 2 * i * j // (ti * tj))
    shared_bytes = 8 * k * (i + j) if split else 0
    occupancy = min(1.0, 65536 // (registers * threads) * threads / 2048)
    traffic = 8 * n**3 * (1 / i + 1 / j) * (1.0 if split else 1.35)
    flops = 2 * n**3
    feeding = flops / 34e12 * (1 + 0.6 * math.exp(-4 * occupancy) + 8 / k * 0.05)
    moving = traffic / 9e12
    spill = 1.0 + max(0, registers - 200) / 60
    fill = max(1.0, 132 * 2 / math.ceil(n / i) / math.ceil(n / j))
    wiggle = _wiggle(point)
    time_s = (feeding**3 + moving**3) ** (1 / 3) * spill * fill**0.5 * wiggle * scale + 4e-6
    voltage = 0.85 + 0.5 * (flops / time_s / 34e12) ** 3
    dynamic_j = (flops * 11e-12 * wiggle**0.3 + traffic * 34e-12) * voltage
    energy_j = (dynamic_j + 120 * time_s) * float(random.normal(1, 0.004)) * scale**0.5
    whole: dict[str, Value] = {**point, "N": n}
    lines = traffic / 32
    return Row(
        variant=variant_key(whole),
        values=tuple(whole.items()),
        status="unstable" if wiggle > 1.29 else "ok",
        card=card,
        sizes=(("N", n),),
        time_s=time_s,
        energy_j=energy_j,
        power_w=energy_j / time_s,
        time_error=0.004,
        energy_error=0.01,
        flops=flops,
        metrics=(
            ("registers", float(registers)),
            ("shared_bytes", float(shared_bytes)),
            ("occupancy", occupancy),
            ("l2_sectors_read", lines * float(random.normal(1, 0.05))),
            ("dram_read_throughput", traffic / 6 / time_s / 1e9),
            ("ipc", 2.1 * flops / time_s / 34e12 * float(random.normal(1, 0.08))),
            ("predicted_time_s", time_s / wiggle**1.5 * float(random.normal(0.95, 0.08))),
            ("predicted_energy_j", energy_j * float(random.normal(1.04, 0.08))),
        ),
        decided=f"k0: tiles {i},{j},{k}; threads {ti},{tj}",
        made_s=float(random.gamma(4, 0.5)),
        card_s=2.0,
        card_j=2.0 * energy_j / time_s,
        at_s=at_s,
        strategy="model",
        created="2026-11-01T12:00:00+00:00",
    )


def _wiggle(point: Point) -> float:
    """Return a factor that only the point decides: what no model knows."""
    return float(np.random.default_rng(int(variant_key(point)[:8], 16)).uniform(0.95, 1.3))


def _failed(one: Row, random: np.random.Generator) -> Row:
    kinds: tuple[tuple[Status, str], ...] = (
        ("rejected by the model", "a block needs 98304 bytes of shared memory, the card has 49152"),
        ("rejected by the model", "a block needs 65600 bytes of shared memory, the card has 49152"),
        ("launch error", "too many resources requested for launch"),
        ("wrong result", "C differs by 3.2e+00 at [0, 17]"),
        ("timeout", "no result after 30 s"),
    )
    status, reason = kinds[int(random.integers(len(kinds)))]
    return replace(
        one, status=status, reason=reason, time_s=None, energy_j=None, power_w=None, metrics=(),
        card=None if status == "rejected by the model" else one.card,
    )  # fmt: skip


def _without(one: Row, *, metrics: bool, energy: bool) -> Row:
    found = one if metrics else replace(one, metrics=())
    return found if energy else replace(found, energy_j=None, power_w=None, card_j=None)


def programs(count: int, variants: int = 120) -> Iterator[Sweep]:
    """Yield sweeps of several made-up programs."""
    names = ("gemm", "2mm", "syrk", "atax", "jacobi-2d", "mvt")
    for k in range(count):
        yield sweep(variants=variants, seed=k, program=names[k % len(names)])
