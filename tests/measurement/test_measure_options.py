from __future__ import annotations

from typing import Any

import pytest

from eatss.base.diagnostics import InputError
from tests.measurement.scripted_card import Folders, measured


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"sizes": {"M": 3}}, "EATSS-E072"),
        ({"confidence": 1.0}, "EATSS-E075"),
        ({"target": 0.0}, "EATSS-E075"),
        ({"least_windows": 0}, "EATSS-E075"),
        ({"device": -1}, "EATSS-E075"),
        ({"warm_up_s": -1.0}, "EATSS-E075"),
    ],
)
def test_options_without_sense_are_refused(
    folders: Folders, options: dict[str, Any], code: str
) -> None:
    with pytest.raises(InputError) as caught:
        measured([folders.variant("a")], **options)
    assert caught.value.code == code


def test_labels_tell_variants_apart(folders: Folders) -> None:
    variant = folders.variant("a")
    with pytest.raises(InputError) as caught:
        measured([variant, variant])
    assert caught.value.code == "EATSS-E077"
    with pytest.raises(InputError) as caught:
        measured([])
    assert caught.value.code == "EATSS-E076"
