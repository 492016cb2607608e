"""``Program`` in, ``Verification`` out: generated code run against the original C.

The text is compiled as C++ for this machine's CPU, with ``shim/eatss_cpu.hpp`` in the place of
CUDA, or by nvcc for a GPU, and runs on random data; what it leaves in its arguments is compared
with what the original leaves. Needs the standard library, NumPy and compilers only. Next folder:
``eatss/report``.
"""
