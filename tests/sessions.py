"""Sessions that are made once for equal arguments, and select once for equal wishes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from eatss.choose.selection import Selection
from eatss.frontend.options import Reading
from eatss.session.session import Session
from eatss.session.source import Source


class SelectingOnce(Session):
    """A session that remembers what it selected."""

    def __init__(self, *given: Any, **how: Any) -> None:
        super().__init__(*given, **how)
        self._selections: dict[str, Selection] = {}

    def select(self, *given: Any, told: Any = None, **how: Any) -> Selection:
        wanted = repr((given, sorted(how.items())))
        if wanted not in self._selections:
            self._selections[wanted] = super().select(*given, **how)
        return self._selections[wanted]


class SessionsOnce:
    """Makes sessions in the place of the class; those of what includes other files each anew."""

    def __init__(self) -> None:
        self._known: dict[object, SelectingOnce] = {}

    def __call__(self, given: Any, reading: Reading | None = None, **how: Any) -> Session:
        reading = reading or Reading()
        source = Source.of(given)
        text = str(source.c)
        if not source.is_text and Path(text).is_file():
            text += Path(text).read_text(encoding="utf-8", errors="replace")
        if source.python is not None or "#include" in text or reading.ppcg_schedule is not None:
            return Session(source, reading, **how)
        key = text, repr((reading, sorted(how.items())))
        if key not in self._known:
            self._known[key] = SelectingOnce(source, reading, **how)
        return self._known[key]
