"""The sequence of launches, compared with what the generated host code itself launches."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from eatss.measurement.arguments import ResolvedLaunch, launches, refusal
from eatss.program import (
    Constant,
    HostIf,
    HostLoop,
    Launch,
    Name,
    Program,
    load_program,
)
from eatss.verify.build import SHIM
from eatss.verify.sizes import choose_sizes
from eatss.verify.sources import size_variable, size_variables

HERE = Path(__file__).parent
PROGRAMS = Path(os.environ.get("EATSS_PROGRAMS", HERE / "programs"))
"""Folders of generated programs; more than those here may be tried."""
FOLDERS = sorted(path.parent for path in PROGRAMS.glob("*/plan.json"))


def host_code(directory: Path, program: Program, work: Path) -> ctypes.CDLL:
    """Compile the generated text with a macro that records in the place of launches."""
    parameters = [p for p in program.parameters if p.kind == "macro"]
    macros = [p.name for p in parameters]
    variables = work / "sizes.hpp"
    variables.write_text(size_variables(macros, language="c++"))
    target = work / f"{program.name}.so"
    included = (SHIM / "eatss_cpu.hpp", variables, HERE / "recorder.hpp")
    subprocess.run(
        [
            *("g++", "-std=c++17", "-O0", "-w", "-fwrapv", "-shared", "-fPIC", "-DEATSS_CPU"),
            *(f"-D{one.macro}={size_variable(one.name)}" for one in parameters),
            *(word for path in included for word in ("-include", str(path))),
            *("-x", "c++", str(directory / program.file), "-o", str(target)),
        ],
        check=True,
    )
    library = ctypes.CDLL(str(target))
    library.eatss_take_record.restype = ctypes.c_char_p
    return library


def recorded(library: ctypes.CDLL, program: Program, sizes: Mapping[str, int]) -> list[str]:
    """Return the lines that the host code writes down at these sizes."""
    for parameter in program.parameters:
        if parameter.kind == "macro":
            name = size_variable(parameter.name)
            ctypes.c_int.in_dll(library, name).value = sizes[parameter.name]
    c_types = {"double": ctypes.c_double, "float": ctypes.c_float, "int": ctypes.c_int}
    for entry in program.entries:
        values = [
            ctypes.c_void_p()
            if argument.role in ("array", "cell")
            else c_types[argument.element_type](sizes.get(argument.name, 1))
            for argument in entry.arguments
        ]
        assert getattr(library, entry.launcher)(*values, ctypes.c_void_p()) == 0
    return str(library.eatss_take_record().decode()).splitlines()


def line(launch: ResolvedLaunch) -> str:
    """Return a launch as ``recorder.hpp`` writes it."""
    integers = dict(launch.integers)
    shown = [str(integers.get(name, "-")) for name in launch.arguments]
    numbers = (*launch.grid, *launch.block, launch.shared_bytes)
    return " ".join((launch.kernel, *map(str, numbers), *shown))


@pytest.mark.parametrize("directory", FOLDERS[:1], ids=lambda path: path.name)
def test_the_launches_are_those_of_the_generated_host_code(directory: Path, tmp_path: Path) -> None:
    program = load_program(directory)
    library = host_code(directory, program, tmp_path)
    defaults = {p.name: p.default or 100 for p in program.parameters}
    for sizes in (*choose_sizes(program), defaults):
        expected = recorded(library, program, sizes)
        assert [line(launch) for launch in launches(program, sizes)] == expected, sizes
    assert expected


ONE = Constant(1)


def program_of(directory: str, *body: Launch | HostLoop | HostIf) -> Program:
    program = load_program(HERE / "programs" / directory)
    return replace(program, entries=(replace(program.entries[0], body=body),))


def test_a_counter_keeps_its_value_around_inner_loops_of_the_same_name() -> None:
    inner = Launch(kernel="kernel_lu_k0", grid=(ONE, ONE, ONE))
    loop = HostLoop(counter="k", lower=Constant(7), upper=Constant(8), step=1, body=(inner,))
    outer = HostLoop(counter="k", lower=Constant(0), upper=Name("N"), step=2, body=(loop, inner))
    found = [dict(launch.integers)["k"] for launch in launches(program_of("lu", outer), {"N": 3})]
    assert found == [7, 8, 0, 7, 8, 2]


def test_broken_assumptions_are_named() -> None:
    program = load_program(HERE / "programs" / "lu")
    assert refusal(program, {"N": 100}) == ""
    assert "less than 2^31 elements" in refusal(program, {"N": 50000})
