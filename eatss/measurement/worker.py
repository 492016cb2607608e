"""The process that holds the card; it may crash or hang, its parent does not.

Reads a job as JSON from standard input; writes one JSON object a line, its events.
"""

from __future__ import annotations

import signal
import sys
import traceback
from types import FrameType
from typing import NoReturn

from eatss.diagnostics import EatssError
from eatss.measurement.card import LaunchError, open_card
from eatss.measurement.job import Broken, CardLost, Emit, Job
from eatss.measurement.meters.choose import METERS
from eatss.measurement.trials import run_trials
from eatss.supervisor import Refused, connect


def main() -> None:
    """Run the job on standard input.

    SIGTERM ends it as an exception does, so that what it started is ended too.
    """
    signal.signal(signal.SIGTERM, _end)
    job, emit = connect(Job, printed_to=2)
    try:
        _run(job, emit)
    except Exception as error:
        traceback.print_exc()
        emit(Broken(error=f"{type(error).__name__}: {' '.join(str(error).split())}"))
        sys.exit(1)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def _run(job: Job, emit: Emit) -> None:
    try:
        if job.meter_origin is not None:
            METERS.register_from(job.options.meter, job.meter_origin)
        options = job.options
        card = open_card(
            job.card, device=options.device, compiler=options.compiler, nvcc=options.nvcc
        )
    except LaunchError as error:
        emit(CardLost(reason=str(error)))
        return
    except EatssError as error:
        emit(Refused.because(error))
        return
    run_trials(card, job, emit)


if __name__ == "__main__":
    main()
