"""``Program`` in, ``Verification`` out: generated code run against the original C.

The text is compiled as C++ for this machine's CPU, with ``shim/eatss_cpu.hpp`` in the place of
CUDA, or by nvcc for a GPU, and runs on random data; what it leaves in its arguments is compared
with what the original leaves. Needs the standard library, NumPy and compilers only. Next folder:
``eatss/report``.
"""

from eatss.verify.plain_text import parse_sizes, verification_text
from eatss.verify.result import Device, Difference, SizeResult, Status, Verification
from eatss.verify.run import verify
from eatss.verify.sizes import choose_sizes, estimated_work, refused_sizes

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
    "verification_text",
    "verify",
]
