"""Products whose blocks take equal shares of all steps are right at every size, and the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.program import Constant, KernelCode, Launch, Program, evaluate
from eatss.verify import verify
from eatss.verify.build import Builder
from eatss.verify.data import make_buffers
from eatss.verify.device import CpuMachine
from tests.lower.test_shared_sums import STAGED, TALL, TRIANGLE, checked

pytestmark = pytest.mark.usefixtures("analysed_once")

SHAPES = """
#ifndef NI
#define NI 1111
#endif
#ifndef NJ
#define NJ 1111
#endif
#ifndef NK
#define NK 1111
#endif
"""


def product(statement: str, first: str = "NI][NK", second: str = "NK][NJ", before: str = "") -> str:
    """Return C with a product of two matrices, and a statement before its sum."""
    return f"""{SHAPES}
    void product(DATA_TYPE alpha, DATA_TYPE beta, DATA_TYPE C[NI][NJ], DATA_TYPE A[{first}],
                 DATA_TYPE B[{second}])
    {{
    #pragma scop
      for (int i = 0; i < NI; i++)
        for (int j = 0; j < NJ; j++) {{
          {before}
          for (int k = 0; k < NK; k++)
            {statement}
        }}
    #pragma endscop
    }}
    """


ADDED = product("C[i][j] += A[i][k] * B[k][j];")
FROM_ZERO = product("C[i][j] += A[i][k] * B[k][j];", before="C[i][j] = 0;")
SUBTRACTED = product("C[i][j] -= alpha * A[i][k] * B[k][j];")
BATCHED = f"""{SHAPES}
#ifndef NB
#define NB 8
#endif
void batched(DATA_TYPE C[NB][NI][NJ], DATA_TYPE A[NB][NI][NK], DATA_TYPE B[NB][NK][NJ])
{{
#pragma scop
  for (int b = 0; b < NB; b++)
    for (int i = 0; i < NI; i++)
      for (int j = 0; j < NJ; j++) {{
        C[b][i][j] = 0;
        for (int k = 0; k < NK; k++)
          C[b][i][j] += A[b][i][k] * B[b][k][j];
      }}
#pragma endscop
}}
"""
PLAIN: dict[str, Any] = {
    "tiles": {"i": 8, "j": 16, "k": 8}, "block": {"i": 4, "j": 8}, "instructions": [],
}  # fmt: skip
SIZES = [
    {"NI": 37, "NJ": 35, "NK": 101},  # many tiles, of which a part are whole ones
    {"NI": 25, "NJ": 16, "NK": 17},  # fewer tiles than blocks, or some more
    {"NI": 5, "NJ": 3, "NK": 97},  # one tile, which many blocks have parts of
    {"NI": 5, "NJ": 3, "NK": 7},  # one step
    {"NI": 9, "NJ": 9, "NK": 0},
]


def streamed(program: Program, blocks: int, loop: str = "k") -> KernelCode:
    """Return the kernel whose blocks take shares, after a look at what is said and launched."""
    note = f"{blocks} blocks take equal shares of the turns over {loop} of all tiles"
    (kernel,) = (one for one in program.kernels if note in one.notes)
    (entry,) = program.entries
    parts, arrived = entry.temporaries
    assert (parts.name, arrived.name) == (f"{kernel.name}_parts", f"{kernel.name}_arrived")
    assert (parts.zeroed, arrived.zeroed) == (False, True)
    assert parts.shape[0] == Constant(2 * blocks)
    (launch,) = (one for one in _launches(entry.body) if one.kernel == kernel.name)
    assert launch.grid[1:] == (Constant(1), Constant(1))
    tiles = dict(kernel.tile_sizes)
    for sizes in SIZES:
        named = {"NB": 3, **sizes}
        turns = {one: -(-named[f"N{one.upper()}"] // tile) for one, tile in tiles.items()}
        turns[loop] = max(1, turns[loop])
        assert evaluate(launch.grid[0], named) == min(prod(turns.values()), blocks)
    return kernel


def _launches(steps: Any) -> Iterator[Launch]:
    for step in steps:
        if isinstance(step, Launch):
            yield step
        else:
            yield from _launches(step.body)


def test_blocks_take_shares_whatever_is_copied_ahead(tmp_path: Path) -> None:
    program = checked(
        TALL.replace("DATA_TYPE", "float"), tmp_path, SIZES, **PLAIN,
        placements=STAGED, stages=2, stream={"k": 6},
    )  # fmt: skip
    kernel = streamed(program, 6)
    assert kernel.regroups
    assert kernel.grid_strides == ("x",)
    assert "eatss_wait_for_copies" in program.text


@pytest.mark.parametrize("source", [SUBTRACTED, BATCHED], ids=["subtracted", "batched"])
def test_blocks_take_shares_of_products_of_all_kinds(source: str, tmp_path: Path) -> None:
    sizes = [{**one, **({"NB": 3} if source is BATCHED else {})} for one in SIZES]
    wanted = {**PLAIN, "tiles": {**PLAIN["tiles"], "b": 1}} if source is BATCHED else PLAIN
    program = checked(
        source.replace("DATA_TYPE", "float"), tmp_path, sizes, **wanted,
        placements=STAGED, stages=2, stream={"k": 7},
    )  # fmt: skip
    streamed(program, 7)


def results(
    program: Program, folder: Path, text: str, sizes: Mapping[str, int], *, times: int = 1
) -> bytes:
    """Return what the program makes of an array, with another text of it.

    Parts of sums have NaN wherever no block leaves some.
    """
    folder.mkdir()
    other = replace(program, text=text)
    builder = Builder(other, folder, folder, "cpu", None)
    machine = CpuMachine(builder.load(builder.generated(sizes), sizes))
    (entry,) = other.entries
    buffers = make_buffers(entry, sizes, "uniform", 0)
    for _ in range(times):
        launched = machine.launch(entry, buffers, backward=False)
        assert (launched.code, launched.status, launched.observed) == (0, "ok", None)
    (result,) = (one for one in buffers if one.argument.writes)
    assert result.first_stray_write() is None
    return bytes(result.array.tobytes())


def test_results_are_the_same_in_whatever_order_blocks_come(tmp_path: Path) -> None:
    """One tile has ten steps: its last block is the first one, the second, one between or last."""
    source = product("C[i][j] += A[i][k] * B[k][j];").replace("DATA_TYPE", "float")
    program = eatss.codegen(
        source, gpu="h200", **PLAIN, placements=STAGED, stages=2, stream={"k": 5}
    )
    streamed(program, 5)
    sizes = {"NI": 6, "NJ": 20, "NK": 77}
    here = "(long)blockIdx.x" if "(long)blockIdx.x" in program.text else "(int)blockIdx.x"
    assert program.text.count("blockIdx.x") == program.text.count(here)
    orders = ("{0} * 2 % 5", "4 - {0}")
    found = {results(program, tmp_path / "plain", program.text, sizes)}
    for number, order in enumerate(orders):
        text = program.text.replace(here, f"({order.format(here)})")
        found.add(results(program, tmp_path / str(number), text, sizes))
    assert len(found) == 1


def test_a_fault_is_seen(tmp_path: Path) -> None:
    faults = (
        ("_parts[((2 * (owner + own) + eatss_min(own, 1))", "_parts[((2 * (owner + own))"),
        ("part != own || own > 1", "true"),
        ("turns = waves + (", "turns = waves - 1 + ("),
        ("eatss_min(NK, 8 * end)", "NK"),
    )
    program = checked(
        TALL.replace("DATA_TYPE", "float"), tmp_path, SIZES, **PLAIN,
        placements=STAGED, stages=1, stream={"k": 6},
    )  # fmt: skip
    (text,) = tmp_path.glob("*.cu")
    for before, after in faults:
        assert before in program.text, before
        text.write_text(program.text.replace(before, after), encoding="utf-8")
        assert verify(tmp_path, device="cpu", sizes=SIZES).status != "ok", after


def test_other_loops_stay_as_they_are_and_say_so() -> None:
    program = eatss.codegen(TRIANGLE, gpu="h200", stream={"k": 6})
    said = "blocks cannot take equal shares of the turns over k"
    notes = [note for kernel in program.kernels for note in kernel.notes]
    assert said in notes
    assert not any("take equal shares of the turns over" in one for one in notes if one != said)
    assert not any(one.name.endswith("_parts") for e in program.entries for one in e.temporaries)
    assert "eatss_comes_last" not in program.text


def test_the_order_of_a_sum_is_kept_where_that_is_asked_for() -> None:
    source = FROM_ZERO.replace("DATA_TYPE", "float")
    with pytest.raises(eatss.InputError, match="EATSS-K020") as raised:
        eatss.codegen(source, gpu="h200", strict_fp=True, stream={"k": 2})
    assert "--stream" in str(raised.value.diagnostics[0].hint)
    for wanted in (None, {"k": 1}):
        program = eatss.codegen(source, gpu="h200", strict_fp=True, stream=wanted)
        assert "eatss_comes_last" not in program.text


def test_no_number_of_blocks_is_refused() -> None:
    with pytest.raises(eatss.InputError, match="EATSS-C004"):
        eatss.codegen(ADDED.replace("DATA_TYPE", "float"), gpu="h200", stream={"k": 0})


def test_a_loop_that_is_not_there_is_refused() -> None:
    source = ADDED.replace("DATA_TYPE", "float")
    with pytest.raises(eatss.InputError, match="EATSS-K001"):
        eatss.codegen(source, gpu="h200", stream={"q": 6})
    with pytest.raises(eatss.InputError, match="EATSS-C004"):
        eatss.codegen(source, gpu="h200", stream={"k": 6}, share={"k": 3})
