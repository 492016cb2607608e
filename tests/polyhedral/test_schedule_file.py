"""Schedules saved and loaded: what is legal loads, what is not is the file's mistake."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import islpy as isl
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eatss.base.diagnostics import ExitCode, InputError
from eatss.frontend import parse_file, parse_source
from eatss.polyhedral import ScheduledScop, schedule_scop
from eatss.polyhedral.isl_names import node_kind
from eatss.polyhedral.schedule_file import load_schedule, same_kernels, save_schedule
from eatss.polyhedral.scheduling import check_legality
from eatss.polyhedral.scop import Scop
from tests.examples import SLOW_KERNELS, with_long

FOLDER = Path(__file__).parents[2] / "kernels"
KERNELS = sorted(FOLDER.glob("*.c"))


@pytest.fixture(scope="module")
def gemm() -> ScheduledScop:
    return schedule_scop(parse_file(FOLDER / "gemm.c").scops[0])


def edited(scheduled: ScheduledScop, *replacements: tuple[str, str]) -> str:
    """Return the saved schedule with parts of its tree replaced."""
    document = json.loads(save_schedule(scheduled))
    tree = json.dumps(document["schedule"])
    for old, new in replacements:
        assert old in tree
        tree = tree.replace(old, new)
    return json.dumps(document | {"schedule": json.loads(tree)})


def outline(scheduled: ScheduledScop) -> list[list[tuple[str, bool]]]:
    return [[(loop.name, loop.parallel) for loop in k.loops] for k in scheduled.kernels]


@pytest.mark.samples(7)
@pytest.mark.parametrize(
    "path",
    with_long(KERNELS, [path for path in KERNELS if path.stem in SLOW_KERNELS]),
    ids=lambda path: path.stem,
)
def test_what_was_saved_loads_in_another_run_with_the_same_kernels(path: Path) -> None:
    scheduled = schedule_scop(parse_file(path).scops[0])
    text = save_schedule(scheduled)
    loaded = load_schedule(parse_file(path).scops[0], text)
    assert same_kernels(loaded, scheduled)
    for one, other in zip(loaded.kernels, scheduled.kernels, strict=True):
        assert [loop.trip_count for loop in one.loops] == [loop.trip_count for loop in other.loops]
        assert [r.text for r in one.references] == [r.text for r in other.references]
        assert one.reductions == other.reductions
        assert str(one.schedule) == str(other.schedule) or _equal(one.schedule, other.schedule)


def _equal(one: isl.UnionMap, other: isl.UnionMap) -> bool:
    return bool(isl.UnionMap.read_from_str(other.get_ctx(), str(one)).is_equal(other))


def test_the_text_is_the_same_in_every_process() -> None:
    code = (
        "import sys\nfrom eatss.frontend import parse_file\n"
        "from eatss.polyhedral import schedule_scop\n"
        "from eatss.polyhedral.schedule_file import save_schedule\n"
        "print(save_schedule(schedule_scop(parse_file(sys.argv[1]).scops[0])), end='')\n"
    )
    path = FOLDER / "3mm.c"
    there = subprocess.run(
        [sys.executable, "-c", code, str(path)],
        check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": "1"}, cwd=FOLDER.parent,
    ).stdout  # fmt: skip
    assert there == save_schedule(schedule_scop(parse_file(path).scops[0]))


OUTER = "{ S0[i, j] -> [(i)]; S1[i, j, k] -> [(i)] }"
MIDDLE = "{ S0[i, j] -> [(j)]; S1[i, j, k] -> [(j)] }"


def test_interchanged_loops_load_and_are_cut_into_kernels(gemm: ScheduledScop) -> None:
    text = edited(gemm, (f"{OUTER}, {MIDDLE}", f"{MIDDLE}, {OUTER}"))
    loaded = load_schedule(gemm.scop, text)
    assert outline(gemm) == [[("i", True), ("j", True), ("k", False)]]
    assert outline(loaded) == [[("j", True), ("i", True), ("k", False)]]


FIRST, SECOND = '{"filter": "{ S0[i, j] }"}', '{"filter": "{ S1[i, j, k] }"}'
K, OUTERMOST = "S1[i, j, k] -> [(k)]", "S1[i, j, k] -> [(i)]"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        (K, "S1[i, j, k] -> [(-k)]", "EATSS-P013"),
        (f"{FIRST}, {SECOND}", f"{SECOND}, {FIRST}", "EATSS-P013"),
        ("[1, 1, 0]", "[1, 1, 1]", "EATSS-P013"),
        (OUTERMOST, "S1[i, j, k] -> [(i + 1)]", "EATSS-P013"),
        ("k <= 3999", "k <= 399", "EATSS-P013"),
        ("{ S1[i, j, k] }", "{ S1[i, j, k] : k < 50 }", "EATSS-P013"),
        ("{ S0[i, j] }", "{ S0[i, j]; S1[i, j, k] : k = 3 }", "EATSS-P013"),
        ('{ S0[i, j] }"}, {"filter": "{ S1[i, j, k] }',
         '{ S0[i, j]; S1[i, j, k] : k < 5 }"}, {"filter": "{ S1[i, j, k] : k >= 5 }',
         "EATSS-P013"),
        (K, "S1[i, j, k] -> [(k/2)]", "EATSS-P013"),
        (OUTERMOST, "S1[i, j, k] -> [(0)]", "EATSS-P013"),
        ("{ S0[i, j] }", "{ S9[i, j] }", "EATSS-P013"),
        (f", {SECOND}", "", "EATSS-P013"),
        ("{ S0[i, j] : 0", "[q] -> { S0[i, j] : q < 0", "EATSS-P013"),
        (K, "S1[i, j, k] -> [(((k)]", "EATSS-P010"),
        (K, "S1[i, j, k] -> [(k + unknown)]", "EATSS-P010"),
        (K, f"S1[i, j, k] -> [({'-' * 100_000}k)]", "EATSS-P010"),
        (K, f"S1[i, j, k] -> [({'(' * 100_000}k)]", "EATSS-P010"),
        (K, "S1[i, j, ä] -> [(ä)]", "EATSS-P010"),
        ('"permutable": 1', '"permutable": 1, "options": "{ unroll[2] }"', "EATSS-P010"),
        ('"permutable": 1', '"permutable": 2', "EATSS-P010"),
        ('"permutable": 1, ', "", "EATSS-P010"),
        ("[1, 1, 0]", "[1, 1]", "EATSS-P010"),
        ('"sequence"', '"order"', "EATSS-P010"),
        (f"[{FIRST}, {SECOND}]", "[]", "EATSS-P010"),
        (FIRST, '"S0"', "EATSS-P010"),
        (FIRST, '{"filter": "{ S0[i, j] }", "child": {"mark": "here"}}', "EATSS-P010"),
    ],
)  # fmt: skip
def test_an_illegal_edit_is_refused_as_a_mistake_of_the_file(
    gemm: ScheduledScop, old: str, new: str, code: str
) -> None:
    with pytest.raises(InputError) as caught:
        load_schedule(gemm.scop, edited(gemm, (old, new)))
    assert caught.value.code == code
    assert caught.value.exit_code is ExitCode.USER_INPUT
    assert caught.value.diagnostics[0].hint
    assert caught.value.diagnostics[0].span == gemm.scop.span


def test_loops_that_may_not_change_places_may_not_be_marked_permutable() -> None:
    body = "for (int i = 1; i < 90; i++) for (int j = 0; j < 89; j++) A[i][j] = A[i - 1][j + 1];"
    scop = parse_source(
        f"void f(double A[90][90])\n{{\n#pragma scop\n{body}\n#pragma endscop\n}}\n"
    ).scops[0]
    document = json.loads(save_schedule(schedule_scop(scop)))
    band = {"schedule": "[{ S0[i, j] -> [(i)] }, { S0[i, j] -> [(j)] }]", "coincident": [0, 0]}
    tree = {"domain": document["schedule"]["domain"], "child": {**band, "permutable": 0}}
    assert load_schedule(scop, json.dumps({**document, "schedule": tree}))
    tree = {"domain": document["schedule"]["domain"], "child": {**band, "permutable": 1}}
    with pytest.raises(InputError) as caught:
        load_schedule(scop, json.dumps({**document, "schedule": tree}))
    assert caught.value.code == "EATSS-P013"


@pytest.mark.samples(8)
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("down", [-2, -1, 0, 1])
@pytest.mark.parametrize("right", [-1, 0, 3])
def test_permutable_is_what_the_distances_say(down: int, right: int, private: bool) -> None:
    """Both loops of a nest may change places iff no distance is negative in one of them."""
    read = f"A[i + {down}][j + {right}]"
    body = f"double t = {read}; A[i][j] = t;" if private else f"A[i][j] = {read};"
    scop = parse_source(
        "void f(double A[90][90])\n{\n#pragma scop\nfor (int i = 5; i < 80; i++)\n"
        f"  for (int j = 5; j < 80; j++) {{ {body} }}\n#pragma endscop\n}}\n"
    ).scops[0]
    names = [statement.name for statement in scop.statements]
    functions = [
        "{ " + "; ".join(f"{name}[i, j] -> [({loop})]" for name in names) + " }" for loop in "ij"
    ]
    document = json.loads(save_schedule(schedule_scop(scop)))
    parts = [{"filter": f"{{ {name}[i, j] }}"} for name in names]
    band = {
        "schedule": f"[{', '.join(functions)}]",
        "permutable": 1,
        "coincident": [0, 0],
        "child": {"sequence": parts},
    }
    tree = {"domain": document["schedule"]["domain"], "child": band}
    text = json.dumps({**document, "schedule": tree})
    distance = max((down, right), (-down, -right))  # from the earlier instance to the later
    if min(distance) >= 0:
        assert load_schedule(scop, text)
        return
    with pytest.raises(InputError) as caught:
        load_schedule(scop, text)
    assert caught.value.code == "EATSS-P013"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": "other"}, "EATSS-P010"),
        ({"version": 2}, "EATSS-P010"),
        ({"version": None}, "EATSS-P010"),
        ({"function": "g"}, "EATSS-P010"),
        ({"region": 1}, "EATSS-P010"),
        ({"statements": []}, "EATSS-P010"),
        ({"statements": None}, "EATSS-P010"),
        ({"schedule": 3}, "EATSS-P010"),
        ({"schedule": []}, "EATSS-P010"),
        ({"schedule": {}}, "EATSS-P010"),
        ({"schedule": {"domain": 3}}, "EATSS-P010"),
        ({"schedule": {"domain": "3"}}, "EATSS-P010"),
        ({"schedule": {"domain": ""}}, "EATSS-P010"),
        ({"schedule": {"domain": "{ }"}}, "EATSS-P013"),
    ],
)
def test_a_file_for_something_else_is_refused(
    gemm: ScheduledScop, change: dict[str, object], code: str
) -> None:
    document = json.loads(save_schedule(gemm)) | change
    with pytest.raises(InputError) as caught:
        load_schedule(gemm.scop, json.dumps(document))
    assert caught.value.code == code


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "[" * 100_000, '{"schema": 1}', "\0"])
def test_text_that_is_no_schedule_file_is_refused(gemm: ScheduledScop, text: str) -> None:
    with pytest.raises(InputError) as caught:
        load_schedule(gemm.scop, text)
    assert caught.value.code == "EATSS-P010"


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_random_damage_is_an_input_error_or_a_legal_schedule(
    gemm: ScheduledScop, data: st.DataObject
) -> None:
    text = save_schedule(gemm)
    begin = data.draw(st.integers(0, len(text) - 1))
    length = data.draw(st.integers(0, 12))
    new = data.draw(st.text(alphabet='0123456789ijkS[](){}-+*/<>:,;"\\ n', max_size=6))
    try:
        loaded = load_schedule(gemm.scop, text[:begin] + new + text[begin + length :])
    except InputError:
        return
    check_legality(loaded.scop, loaded.dependences, loaded.schedule)


def _all_bands_permutable(text: str) -> str:
    return text.replace('"permutable": 0', '"permutable": 1')


def _tiled(node: isl.ScheduleNode) -> isl.ScheduleNode:
    """Tile every permutable band by 2, innermost first."""
    for position in range(node.n_children()):
        node = _tiled(node.child(position)).parent()
    if node_kind(node) == "band" and node.band_get_permutable():
        sizes = isl.MultiVal.zero(node.band_get_space())
        for member in range(node.band_n_member()):
            sizes = sizes.set_at(member, isl.Val(2, node.get_ctx()))
        node = node.band_tile(sizes)
    return node


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_band_that_loads_as_permutable_may_be_tiled(
    scop_of: Callable[..., Scop],
    small_programs: st.SearchStrategy[tuple[str, tuple[str, ...]]],
    data: st.DataObject,
) -> None:
    source, local = data.draw(small_programs)
    scop = scop_of(source, local=local)
    try:
        text = _all_bands_permutable(save_schedule(schedule_scop(scop)))
        loaded = load_schedule(scop, text)
    except InputError as error:
        event(error.code)
        if error.code not in ("EATSS-P001", "EATSS-P013"):  # too hard, or not permutable
            raise
        return
    root = loaded.schedule.get_root()
    check_legality(scop, loaded.dependences, _tiled(root.child(0)).get_schedule())
