"""The process that holds the card; it may crash or hang, its parent does not.

Reads a job as JSON from standard input; writes one JSON object a line, its events.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from importlib import import_module
from types import FrameType
from typing import IO, NoReturn

from eatss.codec import decode
from eatss.diagnostics import EatssError
from eatss.measurement.card import Card, LaunchError
from eatss.measurement.job import Broken, CardLost, Event, Job, Refused, event_to_dict
from eatss.measurement.lane import Tell
from eatss.measurement.options import MeasureOptions
from eatss.measurement.trials import run_trials


def main() -> None:
    """Run the job on standard input.

    SIGTERM ends it as an exception does, so that what it started is ended too.
    """
    signal.signal(signal.SIGTERM, _end)
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what compilers and libraries print is not an event

    def tell(event: Event) -> None:
        _send(output, event)

    job = decode(Job, json.load(sys.stdin))
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
        card = open_card(job.card, job.options)
    except LaunchError as error:
        tell(CardLost(reason=str(error)))
        return
    except EatssError as error:
        first = error.diagnostics[0]
        tell(Refused(code=first.code, message=first.message, hint=first.hint))
        return
    run_trials(card, job, tell)


def open_card(path: str, options: MeasureOptions) -> Card:
    """Return a new card of the class at an import path, ``package.module:name``.

    Raises:
        InputError: there is no such card, or it cannot be used from here.
        LaunchError: the card does not answer.
    """
    module, _, name = path.partition(":")
    make = getattr(import_module(module), name)
    card: Card = make(device=options.device, compiler=options.compiler)
    return card


def _send(output: IO[str], event: Event) -> None:
    output.write(json.dumps(event_to_dict(event), allow_nan=False) + "\n")
    output.flush()


if __name__ == "__main__":
    main()
