"""What the user chooses of a callable."""

from __future__ import annotations

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.base.text import duration_s

LEAST_TUNE_S = 20.0
"""The shortest time in which two candidates are measured."""


@frozen
class CallOptions:
    """How a callable is compiled and kept.

    Attributes:
        specialize: Compile sizes into the machine code: fastest, and compiled again for other
            sizes. ``False`` compiles once for all sizes of a class.
        exact_sizes: Select for the very sizes of a call, not for their class.
        tune: Time to measure the model's best candidates in, on the first call with a class of
            sizes: ``"30s"``, ``"2m"`` or seconds. The winner is kept on disk.
    """

    specialize: bool = True
    tune: str | float | None = None

    exact_sizes: bool = False

    def __post_init__(self) -> None:
        for name in ("specialize", "exact_sizes"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise input_error("EATSS-C004", f"{name} is {value!r}", hint="give True or False")
        self.tune_s()

    def tune_s(self) -> float | None:
        """Return the seconds to measure in; ``None`` for no measuring.

        Raises:
            InputError: ``EATSS-J020``, it is no time.
        """
        if self.tune is None:
            return None
        seconds = duration_s(str(self.tune))
        if not seconds:
            raise input_error(
                "EATSS-J020", f"tune is {self.tune!r}, which is no time", hint="write tune='30s'"
            )
        if seconds < LEAST_TUNE_S:
            raise input_error(
                "EATSS-J020",
                f"tune is {self.tune!r}, which is too short to compile and measure two candidates",
                hint=f"give at least tune='{LEAST_TUNE_S:.0f}s'",
            )
        return seconds
