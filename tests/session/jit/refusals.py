"""A call that has to be refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import eatss


def refused(code: str, call: Callable[[], object]) -> eatss.EatssError:
    with pytest.raises(eatss.InputError) as caught:
        call()
    assert caught.value.code == f"EATSS-{code}", str(caught.value)
    return caught.value
