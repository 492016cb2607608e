"""``CupyCard``: the card of this machine, through CuPy for CUDA and NVML for what it draws."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path

from eatss.base.targets import CardNumber
from eatss.base.text import Texts
from eatss.measurement.arguments import CardMemory
from eatss.measurement.card import cuda_card, import_cupy, translated
from eatss.measurement.compile import compile_target
from eatss.measurement.measurement import CardState, DeviceInfo
from eatss.measurement.meters.background import sampled_states
from eatss.measurement.meters.choose import ChosenMeters, choose_meters
from eatss.measurement.meters.meter import MeterError
from eatss.measurement.meters.nvml import NvmlDevice, card_state, device_info
from eatss.measurement.options import CompilerChoice
from eatss.measurement.workload import CupyWorkload
from eatss.program import Program
from eatss.program.expression import Sizes
from eatss.verify.sizes import complete_sizes


class CupyCard:
    """A card of this machine; what stands in for it has the same public methods.

    Everything runs on one stream of its own. A process opens one card. ``compile_target`` compiles
    for it, ``memory`` has CuPy, the stream, and what workloads share, ``gpu`` is what CUDA tells of
    it.
    """

    def __init__(
        self,
        device: CardNumber = 0,
        compiler: CompilerChoice = "auto",
        *,
        nvcc: str | None = None,
        cache: Path | None = None,
    ) -> None:
        """Open a card.

        Args:
            device: its number as CUDA counts the cards that this process sees (which
                ``CUDA_VISIBLE_DEVICES`` changes), or its UUID; NVML is asked for the card of the
                same UUID.
            compiler: what compiles programs.
            nvcc: path of an nvcc, by default that of this machine.
            cache: folder for compiled programs; by default below the user's cache folder.

        Raises:
            InputError: there is no CuPy (``EATSS-E021``), no driver or no such card
                (``E022``), or nothing that compiles (``E020``).
            LaunchError: the card does not answer.
        """
        self._cupy = import_cupy()
        self._number, self.gpu = cuda_card(self._cupy, device)
        major, minor = self.gpu.compute_capability or (0, 0)
        self.compile_target = compile_target(
            10 * major + minor, compiler, nvcc, device=self._number, cache=cache
        )
        self._nvml = _nvml(self.gpu.uuid)
        with translated("opening the card"), self._cupy.cuda.Device(self._number):
            self._stream = self._cupy.cuda.Stream(non_blocking=True)
        self.memory = CardMemory(
            cupy=self._cupy,
            stream=self._stream,
            current=self._current,
        )

    def sampled_states(self, period_s: float) -> AbstractContextManager[Sequence[CardState]]:
        """Look at clocks, temperature and throttling while a block runs, in a thread."""
        state = CardState if self._nvml is None else partial(card_state, self._nvml)
        return sampled_states(state, period_s)

    def other_processes(self) -> Texts | None:
        """Say which other processes compute on the card; ``None`` if that is not known.

        Programs have to have run on it before, so that this process is among those of the driver.
        """
        if self._nvml is None:
            return None
        try:
            listed = self._nvml.processes()
        except MeterError:
            return None
        return other_processes(listed, os.getpid())

    def meters(self, choice: str) -> ChosenMeters:
        """Return the energy meters to use, and why others are not.

        Raises:
            MeterError: the one asked for by name does not work here.
        """
        return choose_meters(choice, self.gpu.uuid or self._number, nvml=self._nvml)

    def load(self, program: Program, directory: Path, sizes: Sizes, seed: int) -> CupyWorkload:
        """Compile and load a program with seeded random arguments.

        Args:
            program: what to load.
            directory: its folder, which holds the original.
            sizes: values of parameters; defaults where none is given.
            seed: of the data.

        Raises:
            CompileError: it does not compile.
            LaunchError: it does not fit the card, or the launcher refuses the sizes.
            InputError: a size is not the program's, or has no value.
        """
        values = complete_sizes(program, sizes)
        cubin = self.compile_target.compile(program, values)
        return CupyWorkload(
            self.memory, program, directory, values, seed, cubin, self.compile_target
        )

    def now(self) -> float:
        """Return seconds of the clock that meters stamp their samples with."""
        return time.perf_counter()

    def sleep(self, seconds: float) -> None:
        """Let time pass on that clock."""
        time.sleep(seconds)

    def wait(self) -> None:
        """Wait for everything that was enqueued.

        Raises:
            LaunchError: a kernel failed.
        """
        with translated("running"):
            self._stream.synchronize()

    @contextmanager
    def _current(self) -> Iterator[None]:
        with self._cupy.cuda.Device(self._number), self._stream:
            yield

    @cached_property
    def info(self) -> DeviceInfo:
        """Which card it is."""
        toolkit = str(self.compile_target.toolchain)
        if self._nvml is not None:
            return device_info(self._nvml, toolkit=toolkit)
        return DeviceInfo(
            name=self.gpu.name,
            uuid=self.gpu.uuid or None,
            compute_capability=self.compile_target.capability,
            driver=None,
            toolkit=toolkit,
        )


def other_processes(listed: Mapping[int, str], own: int) -> Texts:
    """Return in words those of the listed processes that are not ``own``, which is on the card.

    Where ``own`` is not listed, the numbers are those of the host of a container, and one of them
    is this process.
    """
    others = tuple(words for pid, words in listed.items() if pid != own)
    if len(others) < len(listed):
        return others
    if len(others) < 2:
        return ()
    return (f"all but one, which is this measurement, of {', '.join(others)}",)


def _nvml(card: str) -> NvmlDevice | None:
    """Return the card as NVML knows it, ``None`` where that does not work; meters say why."""
    try:
        return NvmlDevice(card) if card else None
    except MeterError:
        return None
