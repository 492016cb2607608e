"""What stands around the body of a kernel: arguments, shared memory, the function itself."""

from __future__ import annotations

import re
from collections.abc import Mapping as Dictionary
from collections.abc import Sequence
from dataclasses import dataclass

from eatss.codegen.arrays import DeviceArray
from eatss.codegen.lines import Lines, identifiers
from eatss.codegen.references import SHARED
from eatss.codegen.staging import SharedTile


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelArgument:
    """An argument of a kernel: its declaration and its name."""

    declaration: str
    name: str


def kernel_arguments(
    body: str,
    integers: Sequence[tuple[str, str]],
    arrays: Dictionary[str, DeviceArray],
    read_only: frozenset[str],
) -> tuple[KernelArgument, ...]:
    """Return what a body uses of the region's data.

    Args:
        body: the text.
        integers: C type and name of sizes and counters that it may use.
        arrays: the region's arrays by name.
        read_only: the arrays the kernel does not write.
    """
    words = set(identifiers(body))
    found = [
        KernelArgument(declaration=f"{c_type} {name}", name=name)
        for c_type, name in integers
        if name in words
    ]
    for key, array in arrays.items():
        if array.name not in words:
            continue
        c_type = array.array.element_type.value
        const = "const " if key in read_only else ""
        pointer = f"{const}{c_type} *__restrict__ {array.name}"
        declaration = f"{c_type} {array.name}" if array.by_value else pointer
        found.append(KernelArgument(declaration=declaration, name=array.name))
    return tuple(found)


def framed(
    name: str,
    body: str,
    arguments: Sequence[KernelArgument],
    tiles: Sequence[SharedTile],
    threads: int,
    *,
    dynamic_shared: bool,
) -> str:
    """Return the function around a body, the structure of its shared memory in front."""
    lines = Lines()
    if tiles:
        with lines.block(f"struct {name}_shared", ";"):
            for tile in tiles:
                sizes = "".join(f"[{size}]" for size in tile.padded)
                lines.add(f"EATSS_TRACKED({tile.element_type.value}) {tile.name}{sizes};")
        lines.add("")
    declared = ", ".join(argument.declaration for argument in arguments)
    lines.add(f'extern "C" __global__ void __launch_bounds__({threads})')
    lines.add(f"{name}({declared})", "{")
    if tiles:
        macro = "EATSS_DYNAMIC_SHARED" if dynamic_shared else "EATSS_SHARED"
        lines.add(f"    {macro}({name}_shared, {SHARED});")
    return lines.text() + body + "}\n"


def without_unused(body: str) -> str:
    """Leave out constants that nothing mentions."""
    words = identifiers(body)
    kept = []
    for line in body.splitlines():
        declared = re.match(r"\s*const (?:int|long) (\w+) = ", line)
        if declared is None or words.count(declared.group(1)) > 1:
            kept.append(line + "\n")
    return "".join(kept)
