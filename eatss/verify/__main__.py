"""``python -m eatss.verify DIR…``: verification on machines that have NumPy and compilers only."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from eatss.base.codec import json_text
from eatss.base.diagnostics import EatssError
from eatss.verify.plain_text import parse_sizes, verification_text
from eatss.verify.result import Verification, Verifications, exit_code, refused
from eatss.verify.run import verify


def main() -> int:
    """Verify the programs in the folders given; 0 if all are right, 1 if one is not."""
    options = _parser().parse_args()
    found: list[Verification] = []
    errors: list[EatssError] = []
    try:
        sizes = parse_sizes(options.size)
    except EatssError as error:
        return _told(error)
    for directory in options.directories:
        try:
            verification = verify(
                directory,
                device=options.device,
                sizes=sizes,
                seed=options.seed,
                timeout_s=options.timeout,
            )
        except EatssError as error:
            _told(error)
            errors.append(error)
            verification = refused(
                directory, "cpu" if options.device == "auto" else options.device, error
            )
        found.append(verification)
        if not options.json:
            sys.stdout.write(verification_text(verification))
            sys.stdout.flush()
    if options.json:
        sys.stdout.write(json_text(Verifications(verifications=tuple(found))))
    return int(exit_code(found, errors))


def _told(error: EatssError) -> int:
    """Say what is wrong; return the exit code that it has."""
    for diagnostic in error.diagnostics:
        hint = f"\n  {diagnostic.hint}" if diagnostic.hint else ""
        sys.stderr.write(f"{diagnostic}{hint}\n")
    return int(error.exit_code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m eatss.verify", description=__doc__)
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--device", choices=("auto", "cpu", "gpu"), default="auto")
    parser.add_argument("--size", action="append", default=[], metavar="N=37,M=5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--json", action="store_true")
    return parser


if __name__ == "__main__":
    sys.exit(main())
