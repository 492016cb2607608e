"""What PPCG generated beside what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eatss.base.diagnostics import Diagnostic, Severity
from eatss.choose import KernelSelection, Selection
from eatss.choose.selection import PPCG_SHARED_BYTES
from eatss.ppcg_build.host_code import Launched
from eatss.ppcg_build.program import KernelText

_CUT = (
    "an option after -- changes the kernels, or this PPCG does not keep to the schedule that it "
    "loads; leave options out, or build with --no-select"
)
_SIZES = "this PPCG does not take --sizes as PPCG 0.09 does; build with --no-select"


def mismatches(
    selection: Selection,
    names: Sequence[str],
    launches: Sequence[Launched],
    kernels: Sequence[KernelText],
    tiles: Mapping[int, tuple[int, ...]],
) -> tuple[Diagnostic, ...]:
    """Return what of PPCG's code is not as selected; a block with fewer threads is a warning.

    Args:
        selection: what PPCG was asked for.
        names: names of its kernels in their order.
        launches: the launches of its host code; of a kernel without one, blocks are not compared.
        kernels: its kernels; of one that is not there, shared memory is not compared.
        tiles: the tile sizes that it says it used, by number of the kernel.
    """
    if len(names) != len(selection.kernels):
        what = f"{len(names)} kernel{'s' * (len(names) != 1)}"
        wanted = len(selection.kernels)
        message = f"PPCG generated {what}, sizes were selected for {wanted}"
        return (Diagnostic(code="EATSS-R020", message=message, hint=_CUT),)
    blocks = {launch.kernel: launch.block for launch in launches}
    found: list[Diagnostic] = []
    for kernel, name in zip(selection.kernels, names, strict=True):
        tile = tuple(size for _, size in kernel.tile_sizes)
        tiled = tiles.get(kernel.index, ())
        if len(tile) != len(tiled) or (tile != tiled and not kernel.keeps_default):
            message = f"{kernel.name}: PPCG took the tile {_by(tiled)}, {_by(tile)} was asked for"
            hint = _SIZES if len(tile) == len(tiled) else _CUT
            found.append(Diagnostic(code="EATSS-R020", message=message, hint=hint))
        if kernel.block and not kernel.keeps_default and name in blocks:
            found += _of_block(kernel, blocks[name])
    most = PPCG_SHARED_BYTES if selection.keeps_default else selection.ppcg_max_shared_memory
    found += (
        Diagnostic(
            code="EATSS-R020",
            message=f"{text.name} has {text.shared_bytes} bytes of shared memory, at most {most} "
            "were allowed",
            hint="this PPCG does not take --max-shared-memory as PPCG 0.09 does",
        )
        for text in kernels
        if text.shared_bytes > most
    )
    return tuple(found)


def _of_block(kernel: KernelSelection, launched: tuple[int, ...]) -> Iterator[Diagnostic]:
    """Yield what of a kernel's launched block, ``x`` first, is not as selected."""
    block = tuple(size for _, size in kernel.block)
    got, further = tuple(reversed(launched[: len(block)])), set(launched[len(block) :]) - {1}
    if got == block and not further:
        return
    fewer = not further and all(one <= most for one, most in zip(got, block, strict=False))
    yield Diagnostic(
        code="EATSS-R020",
        severity=Severity.WARNING if fewer else Severity.ERROR,
        message=f"{kernel.name}: PPCG launches blocks of {_by(got)}, {_by(block)} was asked for",
        hint="PPCG gives a block no more threads than a tile or the loop has points"
        if fewer
        else _SIZES,
    )


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "nothing"
