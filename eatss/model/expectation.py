"""What the model expects of sizes that a user names: ``eatss predict``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eatss.analysis.facts import KernelFacts
from eatss.diagnostics import input_error
from eatss.gpu.profile import GpuProfile
from eatss.model.ppcg_lattice import candidates, default_vector
from eatss.model.selection import PpcgOptions, Sizes
from eatss.prediction.expected import Prediction
from eatss.prediction.model import PpcgModel


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelExpectation:
    """Sizes of one kernel and what is expected of them; ``None`` where they cannot launch.

    ``default`` is what is expected of the sizes and options that PPCG takes by itself.
    """

    name: str
    statements: tuple[str, ...]
    tile_sizes: Sizes
    block: Sizes
    predicted: Prediction | None
    default: Prediction | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramExpectation:
    """What is expected of a program on a card."""

    file: str
    functions: tuple[str, ...]
    gpu: str
    dtype: str
    options: PpcgOptions
    kernels: tuple[KernelExpectation, ...]

    @property
    def time_s(self) -> float | None:
        """Time of a run, ``None`` where some kernel does not launch."""
        return _sum([None if k.predicted is None else k.predicted.time_s for k in self.kernels])

    @property
    def energy_j(self) -> float | None:
        """Energy of a run, likewise."""
        return _sum([None if k.predicted is None else k.predicted.energy_j for k in self.kernels])

    def to_dict(self) -> dict[str, Any]:
        """Return the expectation as plain JSON types."""
        document = asdict(self)
        document["time_s"], document["energy_j"] = self.time_s, self.energy_j
        for kernel, entries in zip(self.kernels, document["kernels"], strict=True):
            entries["tile_sizes"], entries["block"] = dict(kernel.tile_sizes), dict(kernel.block)
            for name in ("predicted", "default"):
                prediction: Prediction | None = getattr(kernel, name)
                if prediction is not None:
                    entries[name] |= {
                        "power_w": prediction.power_w,
                        "bound": prediction.bound,
                        "times_s": dict(prediction.times_s),
                        "energies_j": dict(prediction.energies_j),
                    }
        return document


def expect(
    kernels: Sequence[KernelFacts],
    profile: GpuProfile,
    *,
    tiles: Mapping[str, Mapping[str, int]],
    blocks: Mapping[str, Sequence[int]],
    options: PpcgOptions,
) -> tuple[KernelExpectation, ...]:
    """Predict sizes that are given; what is not given is PPCG's default.

    Args:
        kernels: the kernels of a program.
        profile: the card.
        tiles: tile sizes by kernel and loop.
        blocks: threads by kernel, in the order of the loops, the last along ``x``; the key ``""``
            is for every kernel that has no entry.
        options: PPCG's options for the program.

    Raises:
        InputError: ``EATSS-M014``: a block has another number of axes than the kernel has threads.
    """
    return tuple(
        _expectation(facts, profile, tiles.get(facts.name, {}), _block(blocks, facts), options)
        for facts in kernels
    )


def _block(blocks: Mapping[str, Sequence[int]], facts: KernelFacts) -> Sequence[int] | None:
    names = (facts.name, f"k{facts.index}", "")
    return next((blocks[name] for name in names if name in blocks), None)


def _expectation(
    facts: KernelFacts,
    profile: GpuProfile,
    tiles: Mapping[str, int],
    block: Sequence[int] | None,
    options: PpcgOptions,
) -> KernelExpectation:
    model = PpcgModel.of(facts, profile)
    kernel = model.kernel
    default = default_vector(kernel) if kernel.threads else ()
    depth = len(kernel.band)
    threads = default[depth:]
    if block is not None and kernel.threads:
        if len(block) != len(kernel.threads) or any(size < 1 for size in block):
            raise input_error(
                "EATSS-M014",
                f"{facts.name} has threads along {', '.join(kernel.threads)}, and its block is "
                f"{', '.join(map(str, block))}",
                hint=f"give {len(kernel.threads)} positive numbers, the last one along x",
            )
        threads = tuple(block)
    sizes = tuple(tiles.get(name, size) for name, size in zip(kernel.band, default, strict=False))
    chosen = candidates(
        kernel,
        (sizes + threads,),
        shared_limit_bytes=options.max_shared_memory,
        unroll=options.unroll_gpu_tile,
    )
    usual = candidates(kernel, (default,), shared_limit_bytes=8192, unroll=False)
    return KernelExpectation(
        name=facts.name,
        statements=facts.statements,
        tile_sizes=tuple(zip(kernel.band, sizes, strict=False)),
        block=tuple(zip(kernel.threads, threads, strict=False)),
        predicted=model.prediction(chosen),
        default=model.prediction(usual),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return sum(found) if len(found) == len(values) else None
