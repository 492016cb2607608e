"""``Program`` in, ``Verification`` out: generated code run against the original C.

The text is compiled as C++ for this machine's CPU, with ``shim/eatss_cpu.hpp`` in the place of
CUDA, or by nvcc for a GPU, and runs on random data; what it leaves in its arguments is compared
with what the original leaves. Needs the standard library, NumPy and compilers only. Next folder:
``eatss/report``.

Importing this package is cheap: callables take its types of arguments alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eatss.base.lazy_names import loading_names

if TYPE_CHECKING:
    from eatss.verify.result import Device, Difference, SizeResult, Status, Verification
    from eatss.verify.run import verify
    from eatss.verify.sizes import choose_sizes, estimated_work, parse_sizes, refused_sizes

_HOME = {
    "Device": "result",
    "Difference": "result",
    "SizeResult": "result",
    "Status": "result",
    "Verification": "result",
    "choose_sizes": "sizes",
    "estimated_work": "sizes",
    "parse_sizes": "sizes",
    "refused_sizes": "sizes",
    "verify": "run",
}

__all__ = [
    "Device",
    "Difference",
    "SizeResult",
    "Status",
    "Verification",
    "choose_sizes",
    "estimated_work",
    "parse_sizes",
    "refused_sizes",
    "verify",
]


__getattr__ = loading_names(__name__, _HOME)
