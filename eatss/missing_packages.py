"""Packages that an installation may leave out, and what to say where one is needed."""

from __future__ import annotations

from importlib.util import find_spec

from eatss.diagnostics import InputError, input_error

GENERATING = {"z3": "z3-solver", "islpy": "islpy", "clang": "libclang"}
"""What ``eatss-measure`` leaves out: modules, and how ``pip`` calls them."""

CARRIED_WITHOUT = frozenset({"networkx", "numpy", "pydantic", "scipy"})
"""What the one file of ``eatss-measure`` leaves to the machine it is carried to."""


def missing_packages(error: BaseException) -> InputError | None:
    """Return what to say of a module that did not load, if an installation may leave it out.

    The error that is returned has the code ``EATSS-C030``.
    """
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    needed = error.name.partition(".")[0]
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
