"""Microbenchmarks of memory: throughput and energy of each level, and what spoils them.

Levels [MIPP, Tables III and IV] and curves [Figs. 6 to 8]: buffers hold random bits; what is read
is folded together, so that no load can be left out, and the machine code is checked for the loads.

A **chase** is Choi and Vuduc's way to the energy of a cache [section 4.3]: every thread follows
numbers in memory, ``k = A[k]``, so that nothing but loads from one level happens.

Access patterns over sizes of blocks, with occupancy [Allen and Ge, Figs. 4 to 9]. A **sequential**
access is one of neighbouring threads to neighbouring words. In a **strided** one each thread walks
through a piece of its own; pieces lie side by side, so neighbouring threads are a piece apart
[Fig. 2]. Every thread does the same number of accesses, whatever the size of a block.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from eatss.measurement.characterize.benchmark import (
    CURVE_WINDOW_S,
    LINE_BYTES,
    SECTOR_BYTES,
    STREAM_BYTES,
    WARP,
    Amounts,
    Benchmark,
    Buffer,
    Chip,
    Fill,
    even_elements,
    output,
)

TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
"""Accesses that are timed, and templates of CUDA."""

PATTERNS = tuple(TABLES["patterns"])
"""The six operations of Allen and Ge, section III-C."""

MOST_THREADS = 1024
ITEMS = 1 << 20
"""Work items of a launch, as in the paper."""

MOST_STRIDE_BYTES = 1 << 18
BLOCKS_PER_SM = 2
_NOTHING: Mapping[str, object] = {}


def memory_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield the benchmarks of each level of memory [MIPP, Tables III and IV], and chases.

    A quarter of L2 is read where L2 is to answer, since both halves of an L2 may keep copies.
    Blocks begin at different places of what a cache holds, so that no two read the same lines
    together. In a chase each thread follows words of one line, so a warp reads one line of 128
    bytes at a time. Where L2 is to answer, every thread has a word of its own; where L1 is, blocks
    share 4 KiB.
    """
    for name, access in TABLES["levels"].items():
        yield _accesses(chip, name, **access)


def curve_benchmarks(chip: Chip) -> Iterator[Benchmark]:
    """Yield what is measured over how threads reach memory; energies of points of curves.

    Reads of 4 bytes a thread of which 1 to 32 lie side by side [MIPP, Fig. 6]: groups of lanes read
    words side by side and are 128 bytes apart, so a warp touches 32 / side lines. Copies of one
    array into another, 1 to 16 bytes a thread [Fig. 7]. Stores with 0 to 31 bank conflicts [Figs.
    4, 5 and 8]. Reads of a byte a thread, neighbours 1 byte to 256 KiB apart: a sweep through the
    buffer is followed by another one sector further on, so that no sector is read again soon. Every
    pattern at block sizes of 32 to 1024 threads.
    """
    for side in (1, 2, 4, 8, 16, 32):
        yield _gathered(
            chip, f"coalesced {side}/32", TABLES["gathers"]["words"],
            f"(n / {side}) * {LINE_BYTES}ull % {STREAM_BYTES}ull + n % {side} * 4",
            lines=WARP // side, sectors=WARP // side * -(-side * 4 // SECTOR_BYTES),
            span=LINE_BYTES / side, parameters=(("side", side), ("lines", WARP // side)),
        )  # fmt: skip
    for name, access in TABLES["copies"].items():
        yield _accesses(chip, name, **access, group="access size", window_s=CURVE_WINDOW_S)
    for n in range(WARP):
        point = {
            "group": "bank conflicts",
            "more": (n,),
            "amounts": {"shared_wavefronts": n + 1, "shared_bytes": LINE_BYTES},
            "parameters": (("conflicts", n),),
            "window_s": CURVE_WINDOW_S,
        }
        yield _accesses(chip, f"{n} conflicts", **TABLES["levels"]["shared write"] | point)
    for power in range(MOST_STRIDE_BYTES.bit_length()):
        stride = 1 << power
        again = f" + n * {stride}ull / {STREAM_BYTES}ull % {stride // 32}ull * {SECTOR_BYTES}"
        lines, sectors = (
            min(WARP, max(1, WARP * stride // size)) for size in (LINE_BYTES, SECTOR_BYTES)
        )
        yield _gathered(
            chip, f"stride {stride} B", TABLES["gathers"]["bytes"],
            f"n * {stride}ull % {STREAM_BYTES}ull{again if stride >= 64 else ''}",
            lines=lines, sectors=sectors, span=min(stride, SECTOR_BYTES),
            parameters=(("stride_bytes", stride),),
        )  # fmt: skip
    for pattern, access in TABLES["patterns"].items():
        for threads in range(WARP, MOST_THREADS + 1, WARP):
            yield _accesses(
                chip, f"{pattern}, {threads} threads", **access, group="block size",
                text="pattern", asked_bytes=LINE_BYTES, blocks=-(-ITEMS // threads),
                threads=threads, turns=4, unroll=16, more=("activity", "recording"),
                window_s=CURVE_WINDOW_S, shared_bytes=16 * threads,
                parameters=(("threads", threads),),
            )  # fmt: skip


def _accesses(
    chip: Chip,
    name: str,
    *,
    text: str,
    opcodes: Sequence[str],
    asked_bytes: int,
    amounts: Amounts = {},  # noqa: B006 - nothing changes it
    values: Mapping[str, object] = _NOTHING,
    threads: int = 512,
    blocks: int = 0,
    turns: int = 64,
    unroll: int = 8,
    given_bytes: int | str = 0,
    written_bytes: int = 0,
    streamed_bytes: int = 0,
    size: int = 16,
    reads: bool = True,
    writes: bool = False,
    fill: Fill = "bits",
    more: Sequence[Any] = (),
    parameters: Sequence[Sequence[Any]] = (),
    **others: Any,
) -> Benchmark:
    """Return a benchmark of accesses by warps: see ``memory.toml``.

    Args:
        chip: the card.
        name: of the benchmark.
        text: name of the template of its CUDA.
        opcodes: of the accesses, in machine code.
        asked_bytes: that a warp asks for in each.
        amounts: how much each has of features of the fit.
        values: what is filled into the template, besides numbers of the launch.
        threads: of a block.
        blocks: of a launch, by default two for each SM.
        turns: of the loop, in one repeat.
        unroll: accesses of a turn by each opcode.
        given_bytes: what is read.
        written_bytes: what is written, by default a word a thread.
        streamed_bytes: instead, what passes: the loop has as many turns as it takes.
        size: bytes of an element of that.
        reads: whether what passes is read.
        writes: whether what passes is written.
        fill: what is read.
        more: arguments besides.
        parameters: where on its curve the benchmark stands.
        others: other fields.
    """
    blocks = blocks or chip.sms * BLOCKS_PER_SM
    beside = blocks * threads
    count = even_elements(streamed_bytes // size, beside * unroll)
    if streamed_bytes:
        turns = count // beside // unroll
        given_bytes = size * (count if reads else beside)
    held = {
        "a quarter of L2": 1 << (chip.l2_bytes // 4).bit_length() - 1,
        "a word a thread": min(chip.l2_bytes // 4, 4 * beside) // (4 * threads) * (4 * threads),
    }.get(str(given_bytes), given_bytes)
    assert isinstance(held, int)
    numbers = {
        "turns": turns,
        "unroll": unroll,
        "steps": turns * unroll,
        "count": count,
        "words": held // 4,
        "mask": held // size - 1,
        "offset": max(threads, held // size // blocks // threads * threads),
        "table": _table(),
    }
    filled = {key: one % numbers if isinstance(one, str) else one for key, one in values.items()}
    loops = float(turns * beside / WARP)
    accesses = loops * unroll * len(opcodes)
    return Benchmark(
        name=name,
        text=TABLES["texts"][text] % (numbers | filled),
        blocks=blocks,
        threads=threads,
        arguments=(
            output(written_bytes or (size * count if writes else 4 * beside)),
            Buffer(size_bytes=held, fill=fill),
            *more,
            "repeat",
        ),
        operations=accesses,
        useful_bytes=accesses * asked_bytes,
        loops=loops,
        amounts=tuple((feature, accesses * each) for feature, each in amounts.items()),
        expected=dict.fromkeys(opcodes, unroll),
        parameters=tuple((what, value) for what, value in parameters),
        **{"group": "memory", **others},
    )


@cache
def _table() -> str:
    """Return what constant memory holds: one address a warp is read, as hardware wants it."""
    value, values = 12345, []
    for _ in range(1088):
        value = (value * 1664525 + 1013904223) % 2**32
        values.append(f"{value}u")
    return ",".join(values)


def _gathered(
    chip: Chip,
    name: str,
    access: Mapping[str, Any],
    place: str,
    *,
    lines: int,
    sectors: int,
    span: float,
    **point: Any,
) -> Benchmark:
    """Return a benchmark of loads from ``place``, of which each takes ``span`` bytes of the buffer.

    A launch goes through the buffer once: blocks drift apart, and in a second round one would find
    in L2 what another has just read.
    """
    moved = sectors * SECTOR_BYTES
    passed = access["turns"] * 8 * chip.sms * 4 * 512 * span
    values = access["values"] | {"place": place.replace("%", "%%")}
    return _accesses(
        chip, name, **{**access, "values": values},
        given_bytes=STREAM_BYTES + MOST_STRIDE_BYTES, blocks=chip.sms * 4,
        amounts={"l1_wavefronts": lines, "l2_bytes": moved, "dram_read_bytes": moved},
        window_s=CURVE_WINDOW_S, repeats=max(1, round(STREAM_BYTES / passed)), **point,
    )  # fmt: skip
