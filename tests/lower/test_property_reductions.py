"""Random nests with reductions compute the same on the device as in C, however they are spread."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.analysis.layout import SplitK
from tests.examples import examples
from tests.lower.spreading import spread_and_verified
from tests.lower.test_spread_reductions import FLOATING, INTEGERS, OF_FLOATING, OF_INTEGERS, UPDATES

DECLARED = (
    "double fmax(double, double);\ndouble fmin(double, double);\n"
    "float fmaxf(float, float);\nfloat fminf(float, float);\n"
)
BOUNDS = ("0; {c} < M", "1; {c} < N", "{o}; {c} < M", "0; {c} <= {o}", "0; {c} < M - 2 * {o}")
LANES = [(32, 64), (32, 32), (8, 24), (1, 16)]


@st.composite
def nests(draw: st.DrawFn) -> str:
    """Return a program of nests, each of which begins and updates a target that stays in it."""
    kind = draw(st.sampled_from((*FLOATING, *INTEGERS)))
    updates = list({**UPDATES, **(OF_FLOATING if kind in FLOATING else OF_INTEGERS)}.values())
    lines: list[str] = []
    for number in range(draw(st.integers(1, 3))):
        outer = [f"i{number}", f"h{number}"][: draw(st.integers(0, 2))]
        inner = [f"j{number}", f"k{number}"][: draw(st.integers(1, 2))]
        target = f"T{number}[{outer[0]}][{outer[-1]}]" if outer else f"T{number}[3][0]"
        known, indent = ["2"], "    "
        for counter in (*outer, *inner):
            if counter == inner[0] and draw(st.booleans()):
                lines.append(f"{indent}{target} = A[{known[-1]}][1];")
            bounds = draw(st.sampled_from(BOUNDS)).format(c=counter, o=draw(st.sampled_from(known)))
            opens = " {" if counter in outer else ""
            lines.append(f"{indent}for (int {counter} = {bounds}; {counter}++){opens}")
            known.append(counter)
            indent += "    "
        term = f"A[{draw(st.sampled_from(known))}][{inner[-1]}]"
        term = f"({term} - B[{inner[0]}])" if draw(st.booleans()) else term
        update = draw(st.sampled_from(updates)).replace("{f}", "f" * (kind == "float"))
        lines.append(indent + update.format(t=target, e=term))
        lines.append("    " + "}" * len(outer))
    targets = ", ".join(f"{kind} T{number}[M + N + 4][M + N + 4]" for number in range(3))
    body = "\n".join(lines)
    return (
        f"{DECLARED}void f(int N, int M, {kind} A[M + N + 4][M + N + 4], {kind} B[M + N + 4], "
        f"{targets})\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    )


@settings(max_examples=examples(3), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    text=nests(),
    lanes=st.sampled_from(LANES),
    chunks=st.sampled_from([1, 2, 5]),
    threads=st.sampled_from([None, 4]),
)
def test_random_reductions_equal_the_original(
    text: str, lanes: tuple[int, int], chunks: int, threads: int | None
) -> None:
    spread = SplitK(lanes=lanes[0], tile=lanes[1], chunks=chunks)
    sizes = ({"N": 9, "M": 70}, {"N": 21, "M": 13}, {"N": 1, "M": 0})
    with TemporaryDirectory() as folder:
        _, found = spread_and_verified(text, Path(folder), spread, *sizes, threads=threads)
    assert (found.status, found.message) == ("ok", ""), text
