"""Errors and warnings say what the command line says: what is wrong, where, what to do."""

from __future__ import annotations

import io
import pickle
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.cache import Cache
from eatss.base.diagnostics import Diagnostic, EatssError, Severity, SourceSpan
from eatss.measurement.foreign import NotStartedError
from eatss.ppcg_build.run import PpcgError
from eatss.report.diagnostics import print_diagnostics
from tests.end_to_end.in_process import eatss as command
from tests.refusals import refusing

SPAN = SourceSpan(file="a.c", line=7, column=12, end_line=7, end_column=18)
PLACED = Diagnostic(
    code="EATSS-F012",
    message="subscript is not affine",
    span=SPAN,
    source_line="    A[i] = B[idx[i]];",
    hint="write it without indirection",
)
PLAIN = Diagnostic(code="EATSS-C001", message="steers \x1b[2J", hint="rename\x07 it")


def test_the_text_has_message_place_and_hint() -> None:
    assert str(EatssError(PLACED)) == (
        "a.c:7:12: error: subscript is not affine [EATSS-F012]\n"
        "    7 |     A[i] = B[idx[i]];\n"
        "      |            ^~~~~~\n"
        "  hint: write it without indirection"
    )


def test_the_text_is_that_of_the_command_line_and_steers_no_terminal() -> None:
    both = (PLACED, PLAIN)
    told = io.StringIO()
    print_diagnostics(both, told)
    assert f"{EatssError(*both)}\n" == told.getvalue()
    assert "\x1b" not in str(EatssError(PLAIN))
    assert "\x07" not in str(EatssError(PLAIN))


def test_the_hint_of_an_uncaught_error_is_shown_once() -> None:
    with refusing("EATSS-G001") as caught:
        eatss.load_profile("h20")
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("hint: did you mean h200") == 1
    assert caught.value.message == 'no GPU profile is called "h20"'
    assert str(caught.value.hint).startswith("did you mean h200")


@pytest.mark.parametrize(
    "kind",
    [eatss.EatssError, eatss.InputError, eatss.NoSolutionError, eatss.InternalError, PpcgError,
     NotStartedError],
)  # fmt: skip
def test_pickling_keeps_everything(kind: type[EatssError]) -> None:
    error = kind(PLACED, PLAIN)
    error.add_note("while it was hot")
    error.status = 126  # type: ignore[attr-defined]
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is kind
    assert (str(back), back.diagnostics, back.code) == (str(error), (PLACED, PLAIN), "EATSS-F012")
    assert (back.exit_code, back.hint) == (kind.exit_code, PLACED.hint)
    assert (back.__notes__, vars(back)["status"]) == (["while it was hot"], 126)


MISSPELT: dict[str, Any] = {"defines": {"NI": 200, "MM": 3}}
CALLS: dict[str, Callable[[], object]] = {
    "select": lambda: eatss.select("@mvt", gpu="h200", **MISSPELT),
    "predict": lambda: eatss.predict("@mvt", gpu="h200", **MISSPELT),
}
"""Calls that read a kernel with a macro that it has not, each in a line of its own."""


def told(function: Callable[[], object]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        function()
    return [one for one in found if issubclass(one.category, eatss.EatssWarning)]


@pytest.mark.parametrize("name", CALLS)
def test_functions_warn_at_the_line_of_the_caller(name: str) -> None:
    function = CALLS[name]
    (found,) = told(function)
    assert found.filename == __file__
    assert found.lineno == function.__code__.co_firstlineno
    assert isinstance(found.message, eatss.EatssWarning)
    assert found.message.code == "EATSS-F095"
    assert str(found.message) == found.message.diagnostic.text()
    assert "-D MM changes nothing" in str(found.message)


def test_what_is_kept_warns_each_time(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for _ in range(2):
        assert len(told(lambda: eatss.select("@mvt", gpu="h200", cache=cache, **MISSPELT))) == 1
    assert list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["select", "predict", "codegen"])
def test_the_command_line_tells_it_once(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", eatss.EatssWarning)
        words = ("@mvt", "--gpu", "h200", "-D", "NI=200", "-D", "MM=3", "--format", "json")
        done = command(name, *words)
    assert done.returncode == 0
    assert done.stderr.count("EATSS-F095") == 1, done.stderr


FOUND = Diagnostic(
    code="EATSS-F095",
    message="-D N changes nothing",
    severity=Severity.WARNING,
    span=SourceSpan(file="k.c", line=1, column=9, end_line=1, end_column=10),
    source_line="#define N 256",
    hint="write #ifndef N before it",
)


def test_a_warning_goes_from_process_to_process() -> None:
    warning = eatss.EatssWarning(FOUND)
    again = pickle.loads(pickle.dumps(warning))
    assert again.diagnostic == FOUND
    assert str(again) == str(warning)
