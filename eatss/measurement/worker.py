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
from eatss.measurement.job import Broken, CardLost, Job
from eatss.measurement.lane import Tell
from eatss.measurement.trials import run_trials
from eatss.supervisor import Refused, connect


def main() -> None:
    """Run the job on standard input.

    SIGTERM ends it as an exception does, so that what it started is ended too.
    """
    signal.signal(signal.SIGTERM, _end)
    job, tell = connect(Job, printed_to=2)
    try:
        _run(job, tell)
    except Exception as error:
        traceback.print_exc()
        tell(Broken(error=f"{type(error).__name__}: {' '.join(str(error).split())}"))
        sys.exit(1)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(128 + number)


def _run(job: Job, tell: Tell) -> None:
    try:
        card = open_card(job.card, device=job.options.device, compiler=job.options.compiler)
    except LaunchError as error:
        tell(CardLost(reason=str(error)))
        return
    except EatssError as error:
        tell(Refused.because(error))
        return
    run_trials(card, job, tell)


if __name__ == "__main__":
    main()
