"""Launch plans made by hand: what a test does not say is the usual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eatss.program import Argument, Constant, Entry, KernelCode, Launch, Original, Program

ONE = Constant(1)


def kernel_code(name: str, **other: Any) -> KernelCode:
    """Return what a plan says of a kernel."""
    given: dict[str, Any] = {
        "statements": ("S0",),
        "block": (16, 16, 1),
        "shared_bytes": 0,
        "dynamic_shared": False,
        "arguments": (),
        "tile_sizes": (("i", 16), ("j", 16), ("k", 16)),
        "notes": (),
    }
    return KernelCode(name=name, **(given | other))


def one_launch(
    function: str, kernel: str, arguments: Sequence[Argument] = (), **other: Any
) -> Entry:
    """Return an entry that launches one block of a kernel."""
    given: dict[str, Any] = {
        "launcher": f"{function}_cuda",
        "region": 0,
        "whole_function": True,
        "temporaries": (),
        "assumptions": (),
        "body": (Launch(kernel=kernel, grid=(ONE, ONE, ONE)),),
    }
    return Entry(function=function, arguments=tuple(arguments), **(given | other))


def plan(name: str, text: str = "", **other: Any) -> Program:
    """Return a program for an H200 in double precision."""
    given: dict[str, Any] = {
        "original": Original(file=f"{name}.c", defines=(), include_dirs=()),
        "gpu": "h200",
        "compute_capability": 90,
        "dtype": "double",
        "strict_fp": False,
        "index_bits": 32,
        "flags": (),
        "parameters": (),
        "kernels": (),
        "entries": (),
    }
    return Program(name=name, file=f"{name}.cu", text=text, **(given | other))
