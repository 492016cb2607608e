"""Mutation score of verification: breaks generated code in small ways and counts what is found.

``python benchmarks/mutants.py`` makes 25 mutants of each of 12 programs, verifies each on the CPU
and prints the score and the survivors; with ``--skip 25`` the next ones. Results are appended to
``--state``, so that a run that was interrupted, or whose ``--budget`` is spent, goes on where it
stopped. ``--further --gpu h200 --per-kernel 20`` takes programs with pipelines on tensor cores,
streams, shared sums, rows, producers and loops instead. Survivors that compute the same as the
program they were made from stand in ``mutants_equivalent.toml`` with the reason, and with the line
where the same change elsewhere is another thing. The programs themselves are verified first: a
mutant that is as incomplete as its program is not found.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import eatss
from eatss.program import Program, load_program, save_program
from eatss.verify.run import verify

KERNELS = (
    "atax",
    "conv-2d",
    "durbin",
    "fdtd-2d",
    "floyd-warshall",
    "gemm",
    "jacobi-2d",
    "lu",
    "mvt",
    "seidel-2d",
    "syrk",
    "trisolv",
)
HERE = Path(__file__).parent
_GEMM = "../kernels/gemm.c"
FURTHER: dict[str, tuple[str, dict[str, Any]]] = {
    "pipeline of doubles": (_GEMM, {}),
    "pipeline of halves": ("programs/halves/product.c", {}),
    "pipeline in TF32": (_GEMM, {"dtype": "float", "tf32": "on"}),
    "pipeline in three TF32": (_GEMM, {"dtype": "float", "tf32": "split"}),
    "stream-K": (_GEMM, {"stream": {"k": 132}}),
    "sum shared by the grid": (_GEMM, {"share": {"k": 4}}),
    "sums split in blocks": ("../kernels/atax.c", {}),
    "sums split in the grid": ("../kernels/mvt.c", {}),
    "shared rows": ("programs/softmax.c", {}),
    "recomputed producers": ("programs/separable-blur.c", {}),
    "collapsed loops": ("programs/stencil-4d.c", {}),
    "collapsed batches": ("programs/batched-product.c", {}),
    "negated products": ("programs/trailing-update.c", {}),
    "several products": ("programs/complex-product.c", {}),
    "two products": ("../kernels/syr2k.c", {}),
}
"""Programs by what is in their code, each with its file and what is asked of ``eatss.codegen``."""

EQUIVALENT = HERE / "mutants_equivalent.toml"
PER_KERNEL = 25
_NEAR = 12
"""Lines by which a place may have moved."""

TIMEOUT_S = 60.0

_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/", "+=": "-=", "-=": "+=", "&&": "||"}
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_OPERATOR = re.compile(r" (<|<=|>|>=|==) ")
_SIGN = re.compile(r" (\+|-|\*|/|%|\+=|-=|&&) ")
_GUARD = re.compile(r"\bif \((.*)\) (?=\{|[a-z])")
_SUBSCRIPTS = re.compile(r"\[([^][]+)\]\[([^][]+)\]")
_LINEAR = re.compile(r"\[(\w+) \* (\w+) \+ (\w+)\]")
_ATOMIC = re.compile(r"eatss_atomic_add\(&(.*), (.*)\);")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A program with one line changed."""

    kernel: str
    kind: str
    line: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What verification said of a mutant."""

    mutant: Mutant
    status: str
    message: str
    time_s: float


def main() -> int:
    """Run the mutants that have no outcome yet; print all outcomes when there are enough."""
    options = _parser().parse_args()
    options.kernels = options.kernels or list(FURTHER if options.further else KERNELS)
    work = Path(tempfile.mkdtemp(prefix="eatss-mutants-"))
    try:
        known = _known(options.state)
        if options.again:
            known = {m: outcome for m, outcome in known.items() if outcome.status != "ok"}
        deadline = time.monotonic() + options.budget
        for kernel in options.kernels:
            _run_kernel(kernel, options, known, work, deadline)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    text = summary([o for o in known.values() if o.mutant.kernel in options.kernels])
    sys.stdout.write(text)
    if options.output is not None:
        options.output.write_text(text, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kernels", nargs="*")
    parser.add_argument("--further", action="store_true", help="programs of FURTHER")
    parser.add_argument("--per-kernel", type=int, default=PER_KERNEL, metavar="N")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="mutants of each kernel")
    parser.add_argument("--state", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--output", type=Path, help="where the table goes besides")
    parser.add_argument("--budget", type=float, default=3600.0, metavar="SECONDS")
    parser.add_argument("--again", action="store_true", help="run survivors a second time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--gpu", default="a100")
    return parser


def _known(state: Path) -> dict[Mutant, Outcome]:
    if not state.exists():
        return {}
    found: dict[Mutant, Outcome] = {}
    for line in state.read_text(encoding="utf-8").splitlines():
        document = json.loads(line)
        mutant = Mutant(**document.pop("mutant"))
        found[mutant] = Outcome(mutant, **document)
    return found


def _run_kernel(
    kernel: str,
    options: argparse.Namespace,
    known: dict[Mutant, Outcome],
    work: Path,
    deadline: float,
) -> None:
    """Run mutants of a kernel until enough of them compile."""
    if time.monotonic() > deadline:
        return
    folder = work / kernel
    file, asked = FURTHER.get(kernel, (f"../kernels/{kernel}.c", {}))
    eatss.codegen(HERE / file, gpu=options.gpu, output=folder, **asked)
    program = load_program(folder)
    original = _original(kernel)
    if original not in known:
        _note(options.state, known, _outcome(program, original, folder, deadline))
    queue = list(chosen_mutants(program, kernel))[options.skip :]
    with ThreadPoolExecutor(options.jobs) as pool:
        while time.monotonic() < deadline:
            done = [m for m in queue if m in known]
            missing = options.per_kernel - sum(known[m].status != "compile error" for m in done)
            waiting = [m for m in queue if m not in done][:missing]
            if not waiting:
                return
            running = [
                pool.submit(_outcome, program, mutant, folder, deadline) for mutant in waiting
            ]
            for future in as_completed(running):
                _note(options.state, known, future.result())


def _original(kernel: str) -> Mutant:
    """Return what stands for a program in which nothing is changed."""
    return Mutant(kernel, "original", 1, "", "")


def _note(state: Path, known: dict[Mutant, Outcome], outcome: Outcome | None) -> None:
    if outcome is not None:
        known[outcome.mutant] = outcome
        with state.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(outcome)) + "\n")


def _outcome(program: Program, mutant: Mutant, folder: Path, deadline: float) -> Outcome | None:
    """Verify a mutant; ``None`` if the budget is spent."""
    if time.monotonic() > deadline:
        return None
    lines = program.text.split("\n")
    if mutant.old:
        lines[mutant.line - 1] = lines[mutant.line - 1].replace(mutant.old, mutant.new)
    with tempfile.TemporaryDirectory(prefix="eatss-mutant-") as place:
        shutil.copytree(folder, place, dirs_exist_ok=True)
        save_program(replace(program, text="\n".join(lines)), Path(place))
        start = time.perf_counter()
        found = verify(Path(place), device="cpu", timeout_s=TIMEOUT_S, first_failure=True)
    return Outcome(mutant, found.status, found.message, time.perf_counter() - start)


def chosen_mutants(program: Program, kernel: str) -> Iterator[Mutant]:
    """Yield all mutants of a program in an order of chance, one kind after the other."""
    kinds: dict[str, list[Mutant]] = {}
    for mutant in all_mutants(program, kernel):
        kinds.setdefault(mutant.kind, []).append(mutant)
    chance = random.Random(kernel)  # noqa: S311 - not for secrets
    for mutants in kinds.values():
        chance.shuffle(mutants)
    while any(kinds.values()):
        for kind in sorted(kinds):
            if kinds[kind]:
                yield kinds[kind].pop()


def all_mutants(program: Program, kernel: str) -> Iterator[Mutant]:
    """Yield every mutant of the kernels and launchers of a program."""
    inside = False
    for number, line in enumerate(program.text.split("\n"), 1):
        if line.startswith("#ifdef EATSS_MAIN"):
            return  # what follows only times the kernels
        if line.startswith('extern "C"'):
            inside = True
        elif line.startswith("}"):
            inside = False
        code = line.partition("//")[0].rstrip()
        if not inside or not code.startswith(" ") or code.lstrip().startswith("#"):
            continue
        for kind, changed in _changes(code):
            if changed != code:
                yield Mutant(kernel, kind, number, code.strip(), changed.strip())


def _changes(code: str) -> Iterator[tuple[str, str]]:
    """Yield what becomes of a line, with the kind of the change."""
    for match in _NUMBER.finditer(code):
        for step in (1, -1):
            yield "constant", _spliced(code, match.span(), str(int(match[0]) + step))
    for match in _OPERATOR.finditer(code):
        yield "comparison", _spliced(code, match.span(1), _COMPARISONS[match[1]])
    for match in _SIGN.finditer(code):
        yield "arithmetic", _spliced(code, match.span(1), _ARITHMETIC[match[1]])
    for match in _GUARD.finditer(code):
        yield "dropped guard", _spliced(code, match.span(1), "true")
    for match in _SUBSCRIPTS.finditer(code):
        yield "exchanged subscripts", _spliced(code, match.span(), f"[{match[2]}][{match[1]}]")
    for match in _LINEAR.finditer(code):
        swapped = f"[{match[3]} * {match[2]} + {match[1]}]"
        yield "exchanged subscripts", _spliced(code, match.span(), swapped)
    for match in _ATOMIC.finditer(code):
        yield "plain atomic", _spliced(code, match.span(), f"{match[1]} += {match[2]};")
    if code.strip() == "__syncthreads();" or "eatss_shuffle_down" in code:
        yield "dropped barrier or shuffle", ";"


def _spliced(text: str, span: tuple[int, int], new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return the score and the survivors."""
    reasons = _reasons()
    originals = {o.mutant.kernel: o.status for o in outcomes if o.mutant.kind == "original"}
    mutants = [o for o in outcomes if o.mutant.kind != "original"]
    made = [o for o in mutants if o.status != "compile error"]
    survivors = [o for o in made if o.status in ("ok", originals.get(o.mutant.kernel))]
    same = [o for o in survivors if _reason(reasons, o.mutant)]
    missed = [o for o in survivors if not _reason(reasons, o.mutant)]
    real = len(made) - len(same)
    found = real - len(missed)
    lines = [
        *(f"{kernel} itself is {told}" for kernel, told in originals.items() if told != "ok"),
        f"{len(made)} mutants of {len({o.mutant.kernel for o in made})} programs "
        f"(and {len(mutants) - len(made)} that do not compile, not counted)",
        f"{len(same)} equivalent; of the other {real}, {found} found: "
        f"{100 * found / max(1, real):.1f} %",
        "",
    ]
    for title, part in (
        ("found, by status", Counter(o.status for o in made if o not in survivors)),
        ("made, by kind", Counter(o.mutant.kind for o in made)),
        ("made, by program", Counter(o.mutant.kernel for o in made)),
    ):
        lines += [title, *(f"  {name:28} {count:4}" for name, count in sorted(part.items())), ""]
    lines.append(f"not found: {len(missed)}")
    lines += [line for outcome in missed for line in _told(outcome.mutant, "")]
    lines += ["", f"equivalent: {len(same)}"]
    lines += [line for o in same for line in _told(o.mutant, _reason(reasons, o.mutant))]
    return "\n".join(lines) + "\n"


def _told(mutant: Mutant, reason: str) -> list[str]:
    told = [
        f"  {mutant.kernel}, line {mutant.line}, {mutant.kind}",
        f"    - {mutant.old}",
        f"    + {mutant.new}",
    ]
    return [*told, f"    {reason}"] if reason else told


_Place: TypeAlias = tuple[str, int, str, str]


def _reason(reasons: Mapping[_Place, str], mutant: Mutant) -> str:
    """Return why a mutant computes the same, or nothing; what stands before kernels may grow."""
    for near in (-mutant.line, *range(-_NEAR, _NEAR + 1)):
        here = (mutant.kernel, mutant.line + near, mutant.old, mutant.new)
        if here in reasons:
            return reasons[here]
    return ""


def _reasons() -> dict[_Place, str]:
    """Return the reasons by change; a line of 0 stands for all lines."""
    document = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {
        (one["kernel"], one.get("line", 0), one["old"], one["new"]): one["reason"]
        for one in document["equivalent"]
    }


if __name__ == "__main__":
    sys.exit(main())
