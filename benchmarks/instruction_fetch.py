"""What a loop costs whose code no cache of instructions keeps, by its length and by its blocks.

    python benchmarks/instruction_fetch.py measure -o FILE        # where the card is
    python benchmarks/instruction_fetch.py [FILE]                 # prints the table

A loop runs so many multiply-adds and a barrier. As many blocks as are told run on every SM, each a
share of the loop behind the one before, as blocks of products are that wait at different times.
The table has the cycles of a scheduler for an instruction: 1 where it always has the next one.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.recorded import RESULTS

FILE = RESULTS.parent / "h100" / "instruction-fetch.json"
LENGTHS = (512, 1024, 1536, 2048, 2560, 3072, 4096, 5120, 6144, 8192, 12288)
BLOCKS = ((128, 1), (256, 1), (512, 1), (128, 2), (256, 2), (128, 3), (128, 4), (64, 4), (64, 8))
"""Threads of a block, and blocks of an SM."""

SUMS = 64
INSTRUCTIONS = 1 << 19
"""That a warp runs, about."""

SHARED_BYTES = 220 << 10
SCHEDULERS = 4

SOURCE = """
extern "C" __global__ void repeated(float *out, long long *cycles, unsigned *places,
                                    unsigned *begun, int rounds, int length) {
  __shared__ unsigned place;
  extern __shared__ float room[];
  float sum[SUMS], factor = 1.0f + 1e-7f * threadIdx.x, more = 1e-3f;
  for (int i = 0; i < SUMS; i++) sum[i] = i;
  if (threadIdx.x == 0) {
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    place = atomicAdd(&places[sm], 1u);
    atomicAdd(begun, 1u);
    while (atomicAdd(begun, 0u) < gridDim.x) ;
  }
  __syncthreads();
  long long start = clock64();
  // a share of a round behind the block before
  while (clock64() - start < (long long)length * blockDim.x / 128 * place) ;
  __syncthreads();
  long long from = 0;
  for (int round = -2; round < rounds; round++) {
    if (round == 0) from = clock64();
BODY
    __syncthreads();
  }
  long long until = clock64();
  float all = 0.0f;
  for (int i = 0; i < SUMS; i++) all += sum[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = all;
  if (threadIdx.x == 0) cycles[blockIdx.x] = until - from;
}
"""


def source_of(length: int) -> str:
    """Return the program of a loop over so many multiply-adds."""
    line = (
        '    asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(sum[{}]) : "f"(factor), "f"(more));'
    )
    body = "\n".join(line.format(at % SUMS) for at in range(length))
    return SOURCE.replace("BODY", body).replace("SUMS", str(SUMS))


def measured(cupy: Any, kernel: Any, length: int, threads: int, blocks: int) -> float:
    """Return the cycles of a scheduler for an instruction, the least of three runs."""
    sms = cupy.cuda.runtime.getDeviceProperties(0)["multiProcessorCount"]
    rounds = max(8, INSTRUCTIONS // length)
    grid = sms * blocks
    out = cupy.zeros(grid * threads, dtype=cupy.float32)
    shared = SHARED_BYTES // blocks - 1024
    kernel.max_dynamic_shared_size_bytes = shared
    found = []
    for _ in range(3):
        cycles = cupy.zeros(grid, dtype=cupy.int64)
        places, begun = cupy.zeros(1024, dtype=cupy.uint32), cupy.zeros(1, dtype=cupy.uint32)
        arguments = (out, cycles, places, begun, cupy.int32(rounds), cupy.int32(length))
        kernel((grid,), (threads,), arguments, shared_mem=shared)
        issued = rounds * length * blocks * threads / 32 / SCHEDULERS
        found.append(float(cycles.mean()) / issued)
    return min(found)


def measure(file: Path) -> None:
    """Measure every length with every number of blocks, and write them to a file."""
    import cupy  # noqa: PLC0415 - only where the card is

    rows = []
    for length in LENGTHS:
        module = cupy.RawModule(code=source_of(length), options=("-std=c++17",))
        kernel = module.get_function("repeated")
        for threads, blocks in BLOCKS:
            each = measured(cupy, kernel, length, threads, blocks)
            rows.append({"length": length, "threads": threads, "blocks": blocks, "cycles": each})
        print(length, *(f"{row['cycles']:.3f}" for row in rows[-len(BLOCKS) :]), file=sys.stderr)
    file.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n")


def table(rows: list[dict[str, Any]]) -> str:
    """Return the table of what was measured."""
    found = {(row["length"], row["threads"], row["blocks"]): row["cycles"] for row in rows}
    heads = [f"{blocks} x {threads}" for threads, blocks in BLOCKS]
    lines = ["multiply-adds " + " ".join(head.rjust(8) for head in heads)]
    cells = {length: [] for length in LENGTHS}  # type: dict[int, list[str]]
    for length, (threads, blocks) in product(LENGTHS, BLOCKS):
        cells[length].append(f"{found[length, threads, blocks]:8.3f}")
    lines += [f"{length:13d} " + " ".join(own) for length, own in cells.items()]
    return "\n".join(lines)


def main() -> None:
    """Measure, or print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="measure, or a file of results")
    parser.add_argument("-o", "--output", type=Path, default=FILE)
    options = parser.parse_args()
    if options.words == ["measure"]:
        measure(options.output)
    else:
        file = Path(options.words[0]) if options.words else FILE
        print(table(json.loads(file.read_text())))


if __name__ == "__main__":
    main()
