"""C in, ``Scop``s out, on libclang; next folder: ``eatss/polyhedral``.

Distinct pointer parameters and distinct global pointers are taken not to overlap, as pet and
PPCG take it; pointers that visibly may overlap are refused. Importing this package is
cheap: libclang and isl are loaded when something is parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.frontend.options import FrontendOptions, FrontendResult, Reading
    from eatss.frontend.parse import parse_file, parse_source
    from eatss.frontend.symbolic import SymbolicResult, parse_symbolic, type_macros

__all__ = [
    "FrontendOptions",
    "FrontendResult",
    "Reading",
    "SymbolicResult",
    "parse_file",
    "parse_source",
    "parse_symbolic",
    "type_macros",
]

_HOME = {
    "FrontendOptions": "options",
    "FrontendResult": "options",
    "Reading": "options",
    "parse_file": "parse",
    "parse_source": "parse",
    "SymbolicResult": "symbolic",
    "parse_symbolic": "symbolic",
    "type_macros": "symbolic",
}

__getattr__ = loading_names(__name__, _HOME)
