"""What PPCG generated beside what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eatss.base.diagnostics import Diagnostic, Severity
from eatss.choose import KernelSelection, Selection
from eatss.choose.selection import PPCG_SHARED_BYTES
from eatss.ppcg_build.host_code import Launched
from eatss.ppcg_build.program import KernelText
from eatss.ppcg_build.run import UsedSizes

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
    used: UsedSizes,
) -> tuple[Diagnostic, ...]:
    """Return what of PPCG's code is not as selected; a block with fewer threads is a warning.

    Args:
        selection: what PPCG was asked for.
        names: names of its kernels in their order.
        launches: the launches of its host code; of a kernel without one, blocks are those that
            PPCG says it used.
        kernels: its kernels; of one that is not there, shared memory is not compared.
        used: the sizes that it says it used.
    """
    if len(names) != len(selection.kernels):
        what = f"{len(names)} kernel{'s' * (len(names) != 1)}"
        wanted = len(selection.kernels)
        message = f"PPCG generated {what}, sizes were selected for {wanted}"
        return (Diagnostic(code="EATSS-R020", message=message, hint=_CUT),)
    blocks = {launch.kernel: launch.block for launch in launches}
    found: list[Diagnostic] = []
    for kernel, name in zip(selection.kernels, names, strict=True):
        found += _of_kernel(kernel, used, blocks.get(name))
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


def _of_kernel(
    kernel: KernelSelection, used: UsedSizes, launched: tuple[int, ...] | None
) -> Iterator[Diagnostic]:
    """Yield what of a kernel's tile and block is not as selected."""
    tile, block = (tuple(n for _, n in pairs) for pairs in (kernel.tile_sizes, kernel.block))
    tiled = used.tiles.get(kernel.index, ())
    message, hint = "", _SIZES
    if len(tile) != len(tiled):
        hint = _CUT
        message = f"PPCG tiles {len(tiled)} loops, sizes were selected for {len(tile)}"
    elif tile != tiled and not kernel.keeps_default:
        message = f"PPCG took the tile {_by(tiled)}, {_by(tile)} was asked for"
    if message:
        yield Diagnostic(code="EATSS-R020", message=f"{kernel.name}: {message}", hint=hint)
    if not block or kernel.keeps_default:
        return
    further: set[int] = set()
    if launched is None:
        got, verb = used.blocks.get(kernel.index, block), "took"
    else:
        got, verb = tuple(reversed(launched[: len(block)])), "launches"
        further = set(launched[len(block) :]) - {1}
    if got == block and not further:
        return
    code, severity, hint = "EATSS-R020", Severity.ERROR, _SIZES
    fewer = all(one <= most for one, most in zip(got, block, strict=False))
    if launched is not None and not further and fewer:
        code, severity = "EATSS-R023", Severity.WARNING
        hint = "PPCG gives a block no more threads than a tile or the loop has points"
    message = f"{kernel.name}: PPCG {verb} blocks of {_by(got)}, {_by(block)} was asked for"
    yield Diagnostic(code=code, severity=severity, message=message, hint=hint)


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "nothing"
