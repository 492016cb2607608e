"""``python -m eatss.measurement.profiled_run DIR``: one run of a program, to be profiled."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from eatss.diagnostics import EatssError
from eatss.measurement.card import CompileError, LaunchError, open_card
from eatss.program import load_program

_CARD = "eatss.measurement.cupy_card:CupyCard"


def main(arguments: Sequence[str] | None = None) -> int:
    """Load a program, run it once while the profiler looks; 0 if it ran, else 1 with a sentence."""
    options = _parser().parse_args(arguments)
    sizes = dict(_size(text) for text in options.size)
    try:
        card = open_card(
            options.card, device=options.device, compiler=options.compiler, nvcc=options.nvcc
        )
        program = load_program(options.directory)
        workload = card.load(program, options.directory, sizes, options.seed)
        workload.reset()
        card.wait()
        with _watched(options.card == _CARD):
            workload.run(1)
            card.wait()
    except (EatssError, CompileError, LaunchError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


@contextmanager
def _watched(on_a_card: bool) -> Iterator[None]:
    """Let the profiler look; what loading and resetting launch is none of its business."""
    if not on_a_card:
        yield
        return
    profiler = importlib.import_module("cupyx.profiler")  # not there without a card
    with profiler.profile():
        yield


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m eatss.measurement.profiled_run", description=__doc__
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--size", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", type=_device, default=0)
    parser.add_argument("--compiler", choices=("auto", "nvrtc", "nvcc"), default="auto")
    parser.add_argument("--nvcc", metavar="PATH")
    parser.add_argument("--card", default=_CARD, help=argparse.SUPPRESS)
    return parser


def _device(text: str) -> int | str:
    return int(text) if text.isdigit() else text


def _size(text: str) -> tuple[str, int]:
    name, _, value = text.partition("=")
    return name, int(value)


if __name__ == "__main__":
    sys.exit(main())
