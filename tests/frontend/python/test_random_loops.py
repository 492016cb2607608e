"""Random loops leave in C, and on the device, what they leave in Python: every bit."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import InputError
from eatss.cards import load_profile
from eatss.choose.options import SelectOptions
from eatss.frontend.python import PythonScop
from eatss.lower.recipe import CodeRequest
from eatss.session.session import Session
from eatss.verify.run import verify
from tests.examples import examples
from tests.frontend.python.random_loops import arguments, generate
from tests.frontend.python.running import (
    check_equal,
    compiled,
    copied,
    loaded,
    run_c,
    run_python,
    same_bits,
)

_HEALTH = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def made(seed: int, folder: Path, *, plain: bool = False) -> PythonScop:
    """Return the loops of a seed; now and then they mix integers as no C does."""
    try:
        return loaded(generate(seed, plain=plain), folder)
    except InputError as error:
        if {one.code for one in error.diagnostics} != {"EATSS-Y004"}:
            raise
        reject()


@settings(max_examples=examples(6), deadline=None, suppress_health_check=_HEALTH)
@given(seed=st.integers(0, 2**32))
def test_c_leaves_what_python_leaves_and_is_read(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scop = made(seed, Path(folder))
        check_equal(scop, arguments(seed), Path(folder))
        assert Session(scop).parsed.scops


def check_on_cpu(seed: int, folder: Path) -> None:
    scop = made(seed, folder, plain=True)
    session, profile = Session(scop, code=True), load_profile("h200")
    try:
        session.symbolic  # noqa: B018
    except InputError as error:
        if not error.code.startswith("EATSS-P0"):  # too hard for isl
            raise
        reject()
    selection = session.select(profile, SelectOptions(target="cuda"))
    program = session.generate(session.recipe(selection, profile, CodeRequest()), profile)
    session.write(program, folder / "program")
    sizes = {"n": 6, "m": 4}
    used = {name: sizes[name] for name in session.scops[0].parameters}
    verification = verify(folder / "program", device="cpu", sizes=[used])
    assert verification.ok, verification


@settings(max_examples=1, deadline=None, suppress_health_check=_HEALTH)
@given(seed=st.integers(0, 2**32))
def test_generated_code_leaves_what_python_leaves(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_on_cpu(seed, Path(folder))


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("(int) floor((double) (a) / (b))", "((a) / (b))"), ("B[i] / 2.0", "B[i] / 2")],
)
def test_the_comparison_notices_c_that_means_something_else(
    right: str, wrong: str, tmp_path: Path
) -> None:
    scop = loaded(
        '@eatss.scop\ndef loops(n: eatss.Param, A: eatss.f32["n"], B: eatss.i32["n"], '
        'C: eatss.f64["n"], D: eatss.f64["n"]):\n'
        "    for i in range(n):\n"
        "        C[(i - 3) // 2 + 2] = B[i] // 3\n"
        "        D[i] = 2.5 * A[i] * A[i] + B[i] / 2\n",
        tmp_path,
    )
    import numpy as np  # noqa: PLC0415 - beside what it makes

    values = [8, np.linspace(0.1, 3, 8, dtype=np.float32), np.arange(-7, 9, 2, dtype=np.int32)]
    values += [np.zeros(8), np.zeros(8)]
    check_equal(scop, values, tmp_path)
    assert right in scop.c_source
    object.__setattr__(scop, "c_source", scop.c_source.replace(right, wrong))
    here, there = copied(values), copied(values)
    run_python(scop, here)
    run_c(compiled(scop, tmp_path), scop, there)
    assert not all(same_bits(one, other) for one, other in zip(here[3:], there[3:], strict=True))
