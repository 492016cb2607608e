"""Packages that an installation may leave out, and what to say where one is needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from eatss.base.diagnostics import InputError, input_error

GENERATING = {"z3": "z3-solver", "islpy": "islpy", "clang": "libclang"}
"""What ``eatss-measure`` leaves out: modules, and how ``pip`` calls them."""

CARRIED_WITHOUT = frozenset({"networkx", "numpy", "pydantic", "scipy"})
"""What the one file of ``eatss-measure`` leaves to the machine it is carried to."""


@contextmanager
def missing_packages_named() -> Iterator[None]:
    """Say in words in the block that a package is not there, if an installation may leave it out.

    Raises:
        InputError: ``EATSS-C030``, such a package is missing.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise _in_words(error) or error from None


def _in_words(error: ModuleNotFoundError) -> InputError | None:
    needed = (error.name or "").partition(".")[0]
    if needed in CARRIED_WITHOUT:
        named = needed
        hint = f"pip install {needed}"
    elif needed in GENERATING:
        named = ", ".join(pip for name, pip in GENERATING.items() if not _installed(name))
        hint = "pip install eatss; programs are verified and measured without"
    else:
        return None
    return input_error("EATSS-C030", f"this needs {named}, not installed here", hint=hint)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
