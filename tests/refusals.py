"""What the user is refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eatss.base.diagnostics import InputError


@contextmanager
def refusing(code: str, match: str | None = None) -> Iterator[pytest.ExceptionInfo[InputError]]:
    """Expect that a block ends in a user's mistake of a code, whose text matches a pattern."""
    with pytest.raises(InputError, match=match) as caught:
        yield caught
    assert caught.value.code == code
