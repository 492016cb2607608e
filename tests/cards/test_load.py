"""A user's own profile: the right ones load, the wrong ones say what and where."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.base.diagnostics import Diagnostic, ExitCode, InputError
from eatss.cards import (
    FIGURES,
    GpuProfile,
    load_profile,
    profile_directory,
    profile_from_document,
    profile_to_document,
)
from eatss.cards.schema import parse_size

GOOD = (profile_directory() / "ga100.toml").read_text(encoding="utf-8")

REQUIRED = [
    field for field in FIGURES if GpuProfile.__dataclass_fields__[field].type in {"int", "float"}
]

Write = Callable[[str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_profile(text: str) -> Path:
        path = tmp_path / "card.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write_profile


def findings(path: str | Path) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        load_profile(path)
    assert caught.value.exit_code is ExitCode.USER_INPUT
    return caught.value.diagnostics


def the_finding(path: str | Path) -> Diagnostic:
    found = findings(path)
    assert len(found) == 1, [str(one) for one in found]
    return found[0]


def changed(old: str, new: str) -> str:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


def test_a_users_own_file_loads_like_a_shipped_one(write: Write) -> None:
    path = write(changed('name = "ga100"', 'name = "mine"'))
    assert load_profile(path).name == "mine"
    assert load_profile(str(path)) == load_profile(path)


def test_a_relative_path_without_folder_is_a_path(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(GOOD)
    monkeypatch.chdir(path.parent)
    assert load_profile("card.toml") == load_profile("ga100")


def test_a_changed_file_is_read_again(write: Write) -> None:
    path = write(GOOD)
    assert load_profile(path).sm_count == 108
    write(changed("sm_count = { value = 108,", "sm_count = { value = 12345,"))
    assert load_profile(path).sm_count == 12345


def test_the_example_of_the_format_description_is_a_profile(write: Write) -> None:
    """Only the figures that it leaves to "any file here" are missing."""
    readme = (profile_directory() / "README.md").read_text(encoding="utf-8")
    example = readme.split("```toml\n")[1].split("```")[0]
    found = findings(write(example))
    given = {"l2_bytes"}
    assert {one.message for one in found} == {
        f"{field} is missing in figures" for field in set(REQUIRED) - given
    }


def test_an_unknown_name_lists_close_and_known_ones() -> None:
    found = the_finding("h20")
    assert found.code == "EATSS-G001"
    assert '"h20"' in found.message
    assert found.hint is not None
    assert "did you mean h200" in found.hint
    assert "xavier" in found.hint


@pytest.mark.parametrize("name", ["", " ", "\0", "gpu\n", "é" * 1000])
def test_odd_names_are_unknown_names(name: str) -> None:
    assert the_finding(name).code == "EATSS-G001"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    found = the_finding(tmp_path / "none.toml")
    assert found.code == "EATSS-G002"
    assert "none.toml" in found.message


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert the_finding(tmp_path).code == "EATSS-G003"
    assert the_finding(f"{tmp_path}{os.sep}").code == "EATSS-G003"


@pytest.mark.parametrize("digits", ["9" * 6000, "1e999"])
@pytest.mark.parametrize("figure", ["sm_count", "tdp_w"])
def test_a_number_of_thousands_of_digits_is_refused(write: Write, figure: str, digits: str) -> None:
    text = re.sub(rf"(?m)^({figure} = {{ value = )[^,]+", rf"\g<1>{digits}", GOOD)
    assert text != GOOD
    assert the_finding(write(text)).code in ("EATSS-G005", "EATSS-G008", "EATSS-G009")


def test_of_thousands_of_faults_the_first_are_told(write: Write) -> None:
    faults = "".join(f"k{number} = 1\n" for number in range(1000))
    for text in (faults + GOOD, GOOD.replace("[figures]\n", f"[figures]\n{faults}"), faults):
        found = findings(write(text))
        assert 20 <= len(found) <= 60
        assert any("k0" in one.message for one in found)


@pytest.mark.parametrize("escape", ["\\u001b[31m", "\\u0007", "\\u009b2J", "\\r", "\\n"])
def test_a_title_that_steers_the_terminal_is_refused(write: Write, escape: str) -> None:
    found = the_finding(write(changed('title = "GA100', f'title = "{escape}GA100')))
    assert found.code == "EATSS-G008"


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "card.toml"
    path.write_bytes(b'schema_version = 1\nname = "caf\xe9"\n')
    found = the_finding(path)
    assert found.code == "EATSS-G004"
    assert "line 2" in found.message


def test_bad_toml_syntax_is_shown_where_it_is(write: Write) -> None:
    found = the_finding(write('schema_version = 1\nname = "ga100\ntitle = "x"\n'))
    assert found.code == "EATSS-G005"
    assert found.span is not None
    assert found.span.line == 2
    assert found.source_line == 'name = "ga100'


@pytest.mark.parametrize("text", ["[figures", "a = 1\na = 2\n", "x", "=\n", "a = \0", "a = [1,"])
def test_broken_toml_is_a_syntax_error_with_a_place(write: Write, text: str) -> None:
    found = the_finding(write(text))
    assert found.code == "EATSS-G005"
    assert found.span is not None


def test_endless_nesting_is_refused(write: Write) -> None:
    assert the_finding(write("a = " + "[" * 200_000)).code == "EATSS-G005"


def test_an_empty_file_lacks_everything(write: Write) -> None:
    found = findings(write(""))
    assert {one.code for one in found} == {"EATSS-G007"}
    assert {one.message.split(": ")[-1].split()[0] for one in found} == {
        "schema_version",
        "name",
        "title",
        "architecture",
        "compute_capability",
        "figures",
        "sources",
    }


@pytest.mark.parametrize("field", REQUIRED)
def test_a_missing_figure_is_named(write: Write, field: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{field} = {{")]
    assert len(lines) == len(GOOD.splitlines()) - 1
    found = the_finding(write("\n".join(lines)))
    assert found.code == "EATSS-G007"
    assert found.message == f"{field} is missing in figures"
    assert found.source_line == "[figures]"


@pytest.mark.parametrize("field", sorted(set(FIGURES) - set(REQUIRED)))
def test_an_optional_figure_may_be_left_out(write: Write, field: str) -> None:
    lines = [line for line in GOOD.splitlines() if not line.startswith(f"{field} = {{")]
    text = "\n".join(lines)
    assert getattr(load_profile(write(text)), field) is None


@pytest.mark.parametrize(
    ("old", "new", "code", "says"),
    [
        ('"192 KiB"', '"192 KB"', "EATSS-G008", "may mean 1000 or 1024"),
        ('"192 KiB"', '"192"', "EATSS-G008", "neither a number of bytes"),
        ('"192 KiB"', "192", "EATSS-G009", "at least 1024"),
        ('"192 KiB"', "true", "EATSS-G008", "integer"),
        ('"192 KiB"', '"192 GiB"', "EATSS-G009", "at most 67108864"),
        ("value = 1410,", "value = 1_410_000,", "EATSS-G009", "at most 20000"),
        ("value = 1555,", "value = 0,", "EATSS-G009", "more than 0"),
        ("value = 1555,", "value = nan,", "EATSS-G008", "finite"),
        ("{ value = 250, source", '{ value = "250 W", source', "EATSS-G008", "number"),
        ("{ value = 250, source", "{ source", "EATSS-G007", "value is missing"),
        ('{ value = 250, source = "eatss-table-3" }', "250", "EATSS-G008", "a table"),
        (', source = "eatss-table-3" }\n\n[sources', " }\n\n[sources", "EATSS-G007", "source"),
        ("bandwidth_gb_s = {", "bandwidth_gbs = {", "EATSS-G006", "bandwidth_gbs"),
        ("schema_version = 1", "schema_version = 2", "EATSS-G012", "is 2"),
        ('name = "ga100"', 'name = "GA 100"', "EATSS-G008", "GA 100"),
        ('compute_capability = "8.0"', "compute_capability = 8.0", "EATSS-G008", "string"),
        ('aliases = ["a100-pcie-40gb"]', 'aliases = "x"', "EATSS-G008", "list"),
        ('aliases = ["a100-pcie-40gb"]', 'aliases = ["x", "x"]', "EATSS-G010", "more than once"),
        ('architecture = "Ampere"', 'architecture = ""', "EATSS-G008", "at least 1 character"),
        ("architecture =", "architectur =", "EATSS-G006", "architectur"),
        ("[notes]\n", '[notes]\ntpd_w = "x"\n', "EATSS-G011", "tpd_w"),
    ],
)
def test_a_wrong_entry_is_named_where_it_stands(
    write: Write, old: str, new: str, code: str, says: str
) -> None:
    text = GOOD
    assert old in text
    text = text.replace(old, new, 1)
    found = [one for one in findings(write(text)) if one.code == code and says in one.message]
    assert found, [str(one) for one in findings(write(text))]
    span, source_line = found[0].span, found[0].source_line
    assert span is not None
    assert source_line == text.splitlines()[span.line - 1]
    assert 1 <= span.column < span.end_column <= len(source_line) + 1


@pytest.mark.parametrize(
    ("field", "value", "against"),
    [
        ("threads_per_warp", "2048", "threads_per_block"),
        ("threads_per_block", "4096", "max_threads_per_sm"),
        ("threads_per_block", "1000", "threads_per_warp"),
        ("max_threads_per_sm", "2040", "threads_per_warp"),
        ("registers_per_block", "131072", "registers_per_sm"),
        ("registers_per_thread", "70000", "registers_per_block"),
        ("shared_per_block_bytes", '"164 KiB"', "shared_per_block_optin_bytes"),
        ("shared_per_block_optin_bytes", '"165 KiB"', "shared_per_sm_bytes"),
        ("shared_per_sm_bytes", '"193 KiB"', "l1_shared_bytes"),
        ("base_clock_mhz", "1411", "boost_clock_mhz"),
    ],
)
def test_contradicting_figures_are_both_named(
    write: Write, field: str, value: str, against: str
) -> None:
    lines = [
        f'{field} = {{ value = {value}, source = "cuda-guide" }}'
        if line.startswith(f"{field} = {{")
        else line
        for line in GOOD.splitlines()
    ]
    found = [one for one in findings(write("\n".join(lines))) if one.code == "EATSS-G010"]
    assert any(field in one.message and against in one.message for one in found)


def test_a_source_that_is_not_in_the_bibliography_is_named(write: Write) -> None:
    old = 'bandwidth_gb_s = { value = 1555, source = "a100-pcie-brief" }'
    found = the_finding(write(changed(old, old.replace("brief", "breif"))))
    assert found.code == "EATSS-G011"
    assert "a100-pcie-breif" in found.message
    assert found.hint is not None
    assert "a100-pcie-brief" in found.hint


def test_all_findings_come_in_one_run_and_in_order_of_place(write: Write) -> None:
    text = GOOD.replace("value = 1410,", "value = -1,").replace('"40 MiB"', '"40 MB"')
    text = text.replace("threads_per_warp = { value = 32", "threads_per_warp = { value = 33")
    text = text.replace("title =", "titel =", 1).replace('source = "eatss-text"', 'source = "x"')
    found = findings(write(text))
    assert {one.code for one in found} == {
        "EATSS-G006",
        "EATSS-G007",
        "EATSS-G008",
        "EATSS-G009",
        "EATSS-G010",
        "EATSS-G011",
    }
    lines = [one.span.line for one in found if one.span is not None]
    assert lines == sorted(lines)


@pytest.mark.parametrize("document", [[], None, 3, "x", {"figures": 3}, {"figures": {"x": []}}])
def test_things_that_are_no_profile_are_refused(document: object) -> None:
    with pytest.raises(InputError):
        profile_from_document(document)  # type: ignore[arg-type]


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@given(
    key=st.sampled_from([*profile_to_document(load_profile("ga100")), "extra"]),
    field=st.sampled_from(FIGURES),
    value=json_like,
)
def test_no_value_anywhere_breaks_the_reader(key: str, field: str, value: object) -> None:
    """Whatever stands in a profile, the answer is a profile or an error of ours."""
    whole = profile_to_document(load_profile("ga100"))
    whole[key] = value
    figure = profile_to_document(load_profile("ga100"))
    figure["figures"][field]["value"] = value
    entry = profile_to_document(load_profile("ga100"))
    entry["figures"][field] = value
    source = profile_to_document(load_profile("ga100"))
    source["figures"][field]["source"] = value
    for document in (whole, figure, entry, source):
        profile, codes = read(document)
        assert all(code.startswith("EATSS-G") for code in codes)
        if profile is not None:
            assert profile_from_document(profile_to_document(profile)) == profile


def read(document: dict[str, Any]) -> tuple[GpuProfile | None, tuple[str, ...]]:
    try:
        return profile_from_document(document), ()
    except InputError as error:
        return None, tuple(finding.code for finding in error.diagnostics)


@given(
    number=st.integers(0, 2**20), unit=st.sampled_from([("B", 1), ("KiB", 2**10), ("GiB", 2**30)])
)
def test_a_size_is_number_times_unit(number: int, unit: tuple[str, int]) -> None:
    assert parse_size(f"{number} {unit[0]}") == number * unit[1]
    assert parse_size(f"{number}{unit[0]}") == number * unit[1]
    assert parse_size(number) == number


def test_a_warm_load_takes_under_ten_milliseconds(write: Write) -> None:
    """The median of fresh files, so that neither the cache nor a pause of the machine counts."""
    load_profile("ga100")
    times = []
    for number in range(9):
        path = write(f"{GOOD}\n# {number}\n")
        start = time.perf_counter()
        load_profile(path)
        times.append(time.perf_counter() - start)
    assert sorted(times)[4] < 0.010


def test_importing_the_package_imports_neither_pydantic_nor_any_gpu_library() -> None:
    code = (
        "import sys, eatss.cards, eatss.cards.detect;"
        "sys.exit(bool({'pydantic', 'pynvml', 'cupy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_loading_a_profile_imports_no_gpu_library() -> None:
    code = (
        "import sys, eatss.cards; eatss.cards.load_profile('h200');"
        "sys.exit(bool({'pynvml', 'cupy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
