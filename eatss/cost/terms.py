"""Time and energy of a launch, term by term."""

from __future__ import annotations

import numpy as np

from eatss.base.frozen import frozen
from eatss.base.memo import once_by
from eatss.base.tape import whole
from eatss.cards.match import clock_within, voltage_share
from eatss.cost.card import SCHEDULERS, Card, CodeConstants
from eatss.cost.demand import TENSOR_COLUMNS, Column, Demand
from eatss.cost.expected import Parts, Prediction
from eatss.plan.intervals import at_least, beyond, least_of, most_of
from eatss.plan.numbers import Number

_UNITS_OF_A_WARP = 16
"""Units that run a warp's floating-point instruction in two cycles. A scheduler with 32 needs two
warps to keep them busy. Inferred from products on an H100 whose last blocks were alone; it stands
for what such warps wait for: multiply-adds alone need one warp (``instruction-fetch``)."""

_INSTRUCTIONS_KEPT = 2048.0
"""Instructions that an SM's first cache of them keeps. Measured on an H100: loops of 2048 and fewer
take their usual time, of 2560 and more up to 2.4 times that (``instruction-fetch``)."""

_FETCH_CYCLES = 1.85
"""Cycles in which such an SM gets an instruction that its first cache does not have. Measured by
two blocks of 128 and of 256 threads that are apart in a long loop: joined with the cycles in which
schedulers issue it gives 2.1 and 1.4 of them (``instruction-fetch``)."""

_APART = 0.5
"""Share of the time in which blocks of an SM are in different loops; assumed: one with the first
rows of a triangle runs beside one with those half of it further."""


@frozen
class Predicted:
    """What the model expects of one run, an entry a candidate; times in s, energies in J.

    ``terms_s``: what each part of the card would take alone, over all launches. ``terms_j``: where
    the energy goes; its entries add up to ``energy_j``. A candidate that cannot launch has infinite
    time and energy and 0 ``resident_blocks``, the blocks of an SM that run at a time.
    """

    time_s: Column
    energy_j: Column
    terms_s: dict[str, Column]
    terms_j: dict[str, Column]
    resident_blocks: Column


def predict(demand: Demand, card: Card, constants: CodeConstants) -> Predicted:
    """Return time and energy of a run, an entry a candidate.

    Terms of time are joined by a p-norm (``sharpness``), to which a launch adds its overhead.
    Energy is the sum of what operations and bytes cost and of constant power × time [Choi and
    Vuduc, *A roofline model of energy*, eqs. (4) and (10)]. Where that takes more power than the
    limit the clock of the SMs falls, and with it what their work costs. The formulas stand in
    docs/model-internals.md.

    Time and energy rise with each term, the clock included: it falls until dynamic energy is what
    the limit leaves in the time that it takes. So of a box of candidates, whose demand is
    intervals, they are bounds: none of it takes less.
    """
    launch = _Launch(demand, card)
    on_chip = {name: least_of(term) for name, term in launch.on_chip().items()}
    edges = least_of(launch.edges())
    memory = least_of(demand.memory_bytes / card.dram_bytes_s)
    every, moved = _energies(demand, card)
    spent, moved = {name: least_of(part) for name, part in every.items()}, least_of(moved)
    core_j, launches = sum(spent.values()), least_of(demand.launches)
    least_w, power, floor = card.prices.constant_w, constants.sharpness, card.prices.voltage_floor
    chip_power, memory_power = sum(term**power for term in on_chip.values()), memory**power
    usual = power, constants.launch_wait * card.launch_s, constants.host_launch_s
    run = launches, chip_power, memory_power, edges
    clock = whole(_clock, usual, card.power_limit_w, least_w, floor, core_j, moved, *run)
    share = voltage_share(clock, floor)
    energies = {name: part * share for name, part in spent.items()} | {"memory": moved}
    dynamic = sum(energies.values())
    # where memory alone draws too much it slows down, too
    run_s = _run_s(clock, usual, *run)
    time_s = np.maximum(run_s, dynamic / max(1.0, card.power_limit_w - least_w))
    energies["constant power"] = least_w * time_s
    terms = {name: launches * term / clock for name, term in on_chip.items()}
    terms["memory"] = launches * memory
    if constants.host_launch_s:
        terms["launches"] = launches * constants.host_launch_s
    launches_at_all = most_of(launch.resident) > 0
    return Predicted(
        time_s=np.where(launches_at_all, time_s, np.inf),
        energy_j=np.where(launches_at_all, dynamic + least_w * time_s, np.inf),
        terms_s=terms,
        terms_j=energies,
        resident_blocks=launch.resident,
    )


def _run_s(
    clock: Column,
    usual: tuple[float, float, float],
    launches: Column,
    chip_power: Column,
    memory_power: Column,
    edges: Column,
) -> Column:
    """Return the seconds of a run at a share of the highest clock."""
    power, wait_s, host_s = usual
    taken = (chip_power / clock**power + memory_power) ** (1 / power) + edges / clock
    return launches * np.maximum(taken + wait_s, host_s)


def _clock(
    usual: tuple[float, float, float],
    limit_w: float,
    least_w: float,
    floor: float,
    *columns: Column,
) -> Column:
    """Return the share of the highest clock that the power limit leaves each run."""
    every = np.broadcast_arrays(*columns)
    ones: Column = np.ones(every[0].shape)

    def power_w(clock: Column, core_j: Column, moved: Column, *run: Column) -> Column:
        return least_w + (core_j * voltage_share(clock, floor) + moved) / _run_s(clock, usual, *run)

    with np.errstate(invalid="ignore", divide="ignore"):
        above = power_w(ones, *every) > limit_w
    some = [own[above] for own in every]
    ones[above] = clock_within(lambda clock: power_w(clock, *some), limit_w, ones[above])
    return ones


class _Launch:
    """A launch on a card: ``tiles`` of the SM that has most of them, which sets the time."""

    def __init__(self, demand: Demand, card: Card) -> None:
        self.demand, self.card, self.streams = demand, card, demand.streams > 0
        resident = card.resident_blocks(
            demand.threads, demand.registers, demand.shared_bytes, demand.shared_limit_bytes
        )
        at_once = np.where(demand.streams <= resident, demand.streams, 0.0)
        self.resident = np.where(self.streams, at_once, resident)
        self.tiles = self._in_turn(demand.blocks / card.sms)
        self.most = np.where(self.streams, demand.stream_tiles, self.tiles)
        self.warps = card.warps_of(demand.threads)
        self.together = np.maximum(1.0, self.resident)

    def _in_turn(self, each: Number, busy: Number = 1.0) -> Number:
        """Return the mean blocks that one place runs one after the other, of ``each`` on average.

        Where some are empty, the others have more than the mean. Where work grows the last one
        begins when most is done; where it falls the first is long.
        """
        uneven = self.demand.uneven
        most = np.ceil(each * busy) / busy if np.any(busy < 1.0) else np.ceil(each)
        if not np.any(uneven):
            return most
        return np.maximum(most, np.where(uneven > 0, np.maximum(each, 1.0), 1.0) + abs(uneven))

    def on_chip(self) -> dict[str, Number]:
        """Return the seconds of a launch that each part of the SMs takes alone."""
        demand, card, cycles = self.demand, self.card, self.card.clock_hz
        places = np.maximum(1.0, self.resident * card.sms)
        rounds = self._in_turn(demand.blocks / places, 1.0 - demand.empty)
        streamed = demand.stream_tiles / np.maximum(1.0, demand.streams)
        rounds = np.where(self.streams, streamed, rounds)
        turns = self._turns(1.0)

        def units(work: Number, per_cycle: float) -> Number:
            wanted = round(per_cycle / SCHEDULERS / _UNITS_OF_A_WARP)
            late = work * (1.0 + demand.late) * self._turns(float(wanted))
            return late * card.warp / per_cycle / cycles

        tensor = {
            f"{form} tensor cores": getattr(demand, column)
            * turns
            * card.warp
            / card.tensor_rate(form)
            / cycles
            for form, column in TENSOR_COLUMNS.items()
        }
        wavefronts = demand.l1_wavefronts + demand.shared_wavefronts
        return {
            "issue": demand.issued * turns / SCHEDULERS / cycles,
            "fp64": units(demand.fp64, card.fp64_per_cycle),
            "fp32": units(demand.fp32, card.fp32_per_cycle),
            **tensor,
            "L1": wavefronts * (self.most / demand.blocks) / cycles,
            "L2": np.maximum(demand.l2_bytes, demand.torn_bytes) / card.l2_bytes_s
            + demand.torn_bytes * (1.0 / card.l2_torn_bytes_s - 1.0 / card.l2_bytes_s),
            "fetch": self._fetched() / cycles,
            "latency": rounds * demand.chain_cycles / cycles,
        }

    def _fetched(self) -> Number:
        """Return the cycles in which an SM gets instructions that its first cache does not keep.

        It gets them once for all warps of a block, and for each of its blocks by itself.
        """
        demand = self.demand
        lost = (self.resident > 1) & (demand.apart_code > _INSTRUCTIONS_KEPT)
        each = demand.issued / (demand.blocks * self.warps) * self.most * demand.apart_again
        return lost * _APART * _FETCH_CYCLES * each

    @once_by(lambda self, wanted: wanted)
    def _turns(self, wanted: float) -> Number:
        """Return how many blocks an SM runs one after the other, as a share of the launch's.

        Of the SM with the most of them. As many as are resident run together, at last those that
        are left. A warp keeps to one of the schedulers, and that with the most warps sets the time.
        It is busy with as many as are ``wanted`` for all of its units, or more.
        """
        demand, together, warps = self.demand, self.together, self.warps / SCHEDULERS
        whole = np.floor(self.tiles / together)
        left = beyond(self.tiles, whole * together)

        def taken(blocks: Number) -> Number:
            """Return the blocks that a scheduler could run meanwhile."""
            return np.maximum(max(1.0, wanted), np.ceil(blocks * warps)) / warps

        rounds = whole * taken(together) + (left > 0) * taken(left)
        rounds = at_least(rounds, self.tiles)
        rounds = at_least(rounds, np.ceil(self.tiles / together) * max(1.0, wanted) / warps)
        streamed = at_least(demand.stream_tiles / together * taken(together), demand.stream_tiles)
        return np.where(self.streams, streamed, rounds) / demand.blocks

    def edges(self) -> Number:
        """Return the seconds of a launch in which blocks only begin or end.

        Of several blocks of an SM the others compute meanwhile: so many times fewer blocks are one
        after the other, and so many times less of the SM is idle.
        """
        demand, card = self.demand, self.card
        present = np.maximum(1.0, np.minimum(self.resident, self.tiles))
        waves = np.ceil(demand.blocks / (present * card.sms))
        alone = waves * demand.edge_cycles / present
        streamed = demand.stream_turns * demand.edge_cycles / np.maximum(1.0, demand.streams)
        streamed = streamed + demand.stream_cycles
        return np.where(self.streams, streamed, alone) / card.clock_hz


def _energies(demand: Demand, card: Card) -> tuple[dict[str, Number], Number]:
    """Return the joules of a run at the highest clock that the SMs' work costs, and memory's."""
    prices, warp = card.prices, card.warp / 32

    def by_lanes(joules: Number) -> Number:
        """Return what instructions take: of a box more is known of the lanes of all of them."""
        idle_too = joules * (1.0 - demand.of_lanes)
        return warp * (joules * demand.lanes * demand.of_lanes + idle_too)

    floating = demand.fp64 * prices.fp64_j + demand.fp32 * prices.fp32_j
    spent = {
        "instructions": by_lanes(demand.instructions) * prices.instruction_j,
        "arithmetic": by_lanes(floating)
        + sum(
            getattr(demand, column) * getattr(prices, f"{column}_j")
            for column in TENSOR_COLUMNS.values()
        ),
        "L1 and shared memory": demand.l1_wavefronts * prices.l1_wavefront_j
        + demand.shared_wavefronts * prices.shared_wavefront_j
        + demand.operand_bytes * prices.shared_byte_j,
        "L2": demand.l2_bytes * prices.l2_byte_j,
    }
    every = {name: demand.launches * part for name, part in spent.items()}
    return every, demand.launches * demand.dram_bytes * prices.dram_byte_j


def prediction_at(demand: Demand, expected: Predicted, row: int) -> Prediction | None:
    """Return one entry of the columns, ``None`` where that candidate cannot launch."""
    if not expected.resident_blocks[row]:
        return None

    def ordered(terms: dict[str, Number]) -> Parts:
        at_row = ((name, float(column[row])) for name, column in terms.items())
        return tuple(sorted(at_row, key=lambda item: -item[1]))

    counts = ("launches", "blocks", "threads", "registers", "shared_bytes")
    return Prediction(
        time_s=float(expected.time_s[row]),
        energy_j=float(expected.energy_j[row]),
        times_s=ordered(expected.terms_s),
        energies_j=ordered(expected.terms_j),
        resident_blocks=int(expected.resident_blocks[row]),
        **{name: int(getattr(demand, name)[row]) for name in counts},
    )


def too_large(demand: Demand, card: Card, row: int) -> str:
    """Return why a candidate cannot launch: what its block needs most of, and what there is."""
    threads, registers, shared_bytes, most_bytes = (
        float(getattr(demand, name)[row])
        for name in ("threads", "registers", "shared_bytes", "shared_limit_bytes")
    )
    limits = (
        ("threads", threads, card.threads_per_block),
        ("bytes of shared memory", shared_bytes, most_bytes),
        ("registers", threads * registers, card.registers_per_sm),
    )
    what, need, have = max(limits, key=lambda one: one[1] / max(1.0, one[2]))
    return f"a block of it needs {need:.0f} {what}, and there are {have:.0f}"
