"""Names of a package that are loaded when they are first asked for (PEP 562).

Completion knows them before they are loaded: ``dir`` of the package lists them all.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def loading_names(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package.

        __getattr__ = loading_names(__name__, {"solve": "solver"})

    Args:
        package: its name.
        homes: the module of each name, as it is called within the package.
    """

    def load(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    module = vars(sys.modules[package])
    module["__dir__"] = lambda: sorted({*module, *homes})
    return load
