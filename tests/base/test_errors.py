"""An error in Python says what the command line says: what is wrong, where, what to do."""

from __future__ import annotations

import pickle
import traceback

import pytest

import eatss
from eatss.base.diagnostics import Diagnostic, EatssError, SourceSpan
from eatss.measurement.foreign import NotStartedError
from eatss.ppcg_build.run import PpcgError
from eatss.report.diagnostics import diagnostics_text
from eatss.tune.processes import CardGoneError

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
    assert str(EatssError(*both)) == diagnostics_text(both).plain
    assert "\x1b" not in str(EatssError(PLAIN))
    assert "\x07" not in str(EatssError(PLAIN))


def test_the_hint_of_an_uncaught_error_is_shown_once() -> None:
    with pytest.raises(eatss.InputError) as caught:
        eatss.load_profile("h20")
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("hint: did you mean h200") == 1
    assert caught.value.code == "EATSS-G001"
    assert caught.value.message == 'no GPU profile is called "h20"'
    assert str(caught.value.hint).startswith("did you mean h200")


@pytest.mark.parametrize(
    "kind",
    [eatss.EatssError, eatss.InputError, eatss.NoSolutionError, eatss.InternalError, PpcgError,
     CardGoneError, NotStartedError],
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
