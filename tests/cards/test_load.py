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
from tests.refusals import refusing

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


def the_finding(path: str | Path) -> Diagnostic:
    with pytest.raises(InputError) as caught:
        load_profile(path)
    assert caught.value.exit_code is ExitCode.USER_INPUT
    (found,) = caught.value.diagnostics
    return found


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


def test_an_unknown_name_lists_close_and_known_ones() -> None:
    found = the_finding("h20")
    assert found.code == "EATSS-G001"
    assert '"h20"' in found.message
    assert found.hint is not None
    assert "did you mean h200" in found.hint
    assert "eatss profiles" in found.hint


@pytest.mark.parametrize("name", ["", "\0", "é" * 1000])
def test_odd_names_are_unknown_names(name: str) -> None:
    assert the_finding(name).code == "EATSS-G001"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    found = the_finding(tmp_path / "none.toml")
    assert found.code == "EATSS-G002"
    assert "none.toml" in found.message


def test_what_is_no_file_of_text_is_refused(tmp_path: Path) -> None:
    assert the_finding(tmp_path).code == "EATSS-G002"
    assert the_finding(f"{tmp_path}{os.sep}").code == "EATSS-G002"
    path = tmp_path / "card.toml"
    path.write_bytes(b'schema_version = 1\nname = "caf\xe9"\n')
    assert the_finding(path).code == "EATSS-G002"


@pytest.mark.parametrize("digits", ["9" * 6000, "1e999"])
@pytest.mark.parametrize("figure", ["sm_count", "tdp_w"])
def test_a_number_of_thousands_of_digits_is_refused(write: Write, figure: str, digits: str) -> None:
    text = re.sub(rf"(?m)^({figure} = {{ value = )[^,]+", rf"\g<1>{digits}", GOOD)
    assert text != GOOD
    assert the_finding(write(text)).code == "EATSS-G005"


def test_bad_toml_syntax_is_shown_where_it_is(write: Write) -> None:
    found = the_finding(write('schema_version = 1\nname = "ga100\ntitle = "x"\n'))
    assert found.code == "EATSS-G005"
    assert found.span is not None
    assert found.span.line == 2
    assert found.source_line == 'name = "ga100'


@pytest.mark.parametrize("text", ["[figures", "a = 1\na = 2\n", "a = \0", "a = " + "[" * 200_000])
def test_broken_toml_is_a_syntax_error_with_a_place(write: Write, text: str) -> None:
    found = the_finding(write(text))
    assert found.code == "EATSS-G005"
    assert found.span is not None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"192 KiB"', '"192 KB"', "no size"),
        ('"192 KiB"', "192", "1024 to"),
        ('"192 KiB"', '"192 GiB"', "to 67108864"),
        ("value = 1555,", "value = 0,", "GB/s"),
        ("value = 1555,", "value = nan,", "is nan"),
        ("{ value = 250, source", '{ value = "250 W", source', "no float"),
        (', source = "eatss-table-3" }\n\n[sources', " }\n\n[sources", "no 'source'"),
        ("bandwidth_gb_s = {", "bandwidth_gbs = {", "bandwidth_gbs"),
        ("schema_version = 1", "schema_version = 2", "is 2"),
        ('name = "ga100"', 'name = "GA 100"', "GA 100"),
        ('compute_capability = "8.0"', "compute_capability = 8.0", "no str"),
        ('aliases = ["a100-pcie-40gb"]', 'aliases = ["x", "x"]', "more than once"),
        ("[notes]\n", '[notes]\ntpd_w = "x"\n', "tpd_w"),
        ("threads_per_warp = { value = 32,", "threads_per_warp = { value = 2048,", "more than"),
    ],
)
def test_a_wrong_entry_is_named_where_it_stands(
    write: Write, old: str, new: str, says: str
) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new, 1)
    found = the_finding(write(text))
    assert says in found.message
    assert found.span is not None
    assert found.source_line == text.splitlines()[found.span.line - 1]
    assert any(line.strip() for line in new.splitlines() if line in str(found.source_line))


@pytest.mark.parametrize("key", ["title", "figures", "l2_bytes"])
def test_what_is_missing_is_named(write: Write, key: str) -> None:
    whole = profile_to_document(load_profile("ga100"))
    (whole["figures"] if key in FIGURES else whole).pop(key)
    with refusing("EATSS-G005", key):
        profile_from_document(whole)


def test_a_source_that_is_not_in_the_bibliography_is_named(write: Write) -> None:
    old = 'bandwidth_gb_s = { value = 1555, source = "a100-pcie-brief" }'
    found = the_finding(write(changed(old, old.replace("brief", "breif"))))
    assert found.code == "EATSS-G005"
    assert "a100-pcie-breif" in found.message
    assert found.hint is not None
    assert "a100-pcie-brief" in found.hint


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
