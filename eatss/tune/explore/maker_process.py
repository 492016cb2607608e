"""Where variants come from: a process that makes them, or folders that were made before."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.supervisor import Outcome, Refused, Worker
from eatss.measurement.card import CompileError
from eatss.measurement.compile import Toolchain, compile_program, find_toolchains, usable_cache
from eatss.measurement.launches import complete_sizes
from eatss.program import load_program
from eatss.tune.explore.card_process import HeldProcess
from eatss.tune.explore.nouns import Made, MakerJob, Wanted

MAKE_LIMIT_S = 300.0
"""The slowest generator and compiler of the largest variant take minutes."""


class MakerProcess(HeldProcess):
    """Makes variants, one at a time."""

    def __init__(self, job: MakerJob) -> None:
        super().__init__()
        self._job = job

    def warm(self) -> None:
        """Start the process and let it analyse the program.

        Raises:
            InputError: nothing can be made here.
        """
        refused: list[Refused] = []
        outcome = self.start(
            Worker(
                module="eatss.tune.explore.maker_worker",
                job=self._job,
                events=(Made, Refused),
                start_limit_s=MAKE_LIMIT_S,
            ),
            refused.append,
        )
        if refused:
            self._worker = None
            raise refused[0].error()
        if outcome is not None:
            raise input_error(
                "EATSS-W034",
                f"the process that generates variants {outcome.how} when it started"
                + (f": {' | '.join(outcome.said)}" if outcome.said else ""),
                hint="it may lack memory: try with fewer --makers",
            )

    def make(self, wanted: Wanted) -> Made:
        """Return a variant, or why there is none.

        Raises:
            InputError: nothing can be made here.
        """
        if self._worker is None:
            self.warm()
        assert self._worker is not None
        found: list[Made] = []
        outcome = self._worker.ask(wanted, found.append, limit_s=MAKE_LIMIT_S)
        if outcome is not None:
            self._worker = None
        return found[0] if found else self._failed(wanted, outcome)

    def _failed(self, wanted: Wanted, outcome: Outcome | None) -> Made:
        why = "said nothing" if outcome is None else outcome.how
        if outcome is not None and not outcome.in_time:
            why = f"did not end within {MAKE_LIMIT_S:g} s"
        said = "" if outcome is None or not outcome.said else f": {' | '.join(outcome.said)}"
        return Made(
            variant=wanted.variant,
            folder=None,
            status="rejected by the model",
            reason=f"the process that generates it {why}{said}",
        )


def compiled(made: Made, toolchains: Sequence[Toolchain], capability: int) -> Made:
    """Return a variant compiled into the cache; as it is where there is nothing that compiles."""
    if not toolchains or made.folder is None:
        return made
    program = load_program(Path(made.folder))
    sizes = complete_sizes(program, dict(made.sizes))
    try:
        compile_program(toolchains, program, sizes, capability, cache=usable_cache())
    except CompileError as error:
        return replace(made, folder=None, status="compile error", reason=str(error))
    return made


@frozen
class PreparedVariants:
    """Variants that were generated elsewhere, by their keys, with what compiles them here.

    Without a compiler nothing is compiled ahead.
    """

    made: Mapping[str, Made]
    capability: int
    toolchains: Sequence[Toolchain]

    @classmethod
    def on(cls, made: Mapping[str, Made], capability: int) -> PreparedVariants:
        """Return variants for a card.

        Raises:
            InputError: ``EATSS-E020``, nothing compiles here.
        """
        return cls(made=made, capability=capability, toolchains=find_toolchains("auto"))

    def warm(self) -> None:
        """Nothing has to be ready."""

    def make(self, wanted: Wanted) -> Made:
        """Return a variant, compiled."""
        begin_s = time.monotonic()
        made = compiled(self.made[wanted.variant], self.toolchains, self.capability)
        if made.folder is None or not self.toolchains:
            return made
        return replace(made, made_s=made.made_s + time.monotonic() - begin_s)

    def stop(self) -> None:
        """Let a compiler end by itself."""

    def close(self) -> None:
        """Nothing was started."""


Workshop: TypeAlias = MakerProcess | PreparedVariants
"""Makes variants, one at a time, in the thread that uses it."""
