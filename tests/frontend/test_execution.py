"""The extracted sets are those of the program when it runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.frontend.parse import parse_file
from tests.examples import examples
from tests.frontend import random_programs

PROGRAMS_PER_COMPILATION = 6


def without_numbers(instances: list[Any]) -> list[Any]:
    """Leave out the numbers of statements, which shift where one that never runs is left out."""
    return [(i.counters, i.touches, i.value) for i in instances]


@settings(
    max_examples=examples(3),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    seeds=st.lists(
        st.integers(0, 2**32),
        min_size=PROGRAMS_PER_COMPILATION,
        max_size=PROGRAMS_PER_COMPILATION,
        unique=True,
    )
)
def test_domains_accesses_order_and_values_equal_those_of_the_executed_program(
    seeds: list[int],
) -> None:
    programs = [random_programs.generate(seed) for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        traces = random_programs.run_traces(programs, Path(folder))
    for program, executed in zip(programs, traces, strict=True):
        result = parse_file(program.source)
        values = {"n": program.n, "m": program.m}
        extracted = random_programs.instances_of(result.scops[0], values)
        if any(warning.code == "EATSS-F093" for warning in result.warnings):
            assert without_numbers(extracted) == without_numbers(executed), program.source
        else:
            assert extracted == executed, program.source


def test_the_comparison_notices_a_wrong_order(tmp_path: Path) -> None:
    program = random_programs.Program(
        source="void f(int n, double *B) {\n#pragma scop\n"
        "for (int i = 0; i < n; i++) B[i] = B[i] + (double) (i + 7 * n);\n#pragma endscop\n}\n",
        traced="for (int i = n - 1; i >= 0; i--) "
        'printf("0|%d |B %d;B %d;|%d\\n", i, i, i, i + 7 * n);',
        n=3,
        m=1,
    )
    (executed,) = random_programs.run_traces([program], tmp_path)
    extracted = random_programs.instances_of(parse_file(program.source).scops[0], {"n": 3, "m": 1})
    assert extracted == executed[::-1]
    assert extracted != executed
