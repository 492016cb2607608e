"""What PPCG generated beside what it was asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eatss.diagnostics import Diagnostic, Severity
from eatss.model import KernelSelection, Selection
from eatss.model.selection import PPCG_SHARED_BYTES
from eatss.ppcg_build.host_code import Launched
from eatss.ppcg_build.kernel_code import KernelText
from eatss.ppcg_build.sizes import UsedSizes

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
        return (_kernels(len(selection.kernels), len(names)),)
    blocks = {launch.kernel: launch.block for launch in launches}
    found: list[Diagnostic] = []
    for kernel, name in zip(selection.kernels, names, strict=True):
        found += _tile(kernel, used.tiles)
        if kernel.block and not kernel.keeps_default:
            if name in blocks:
                found += _block(kernel, blocks[name])
            else:
                found += _used_block(kernel, used.blocks)
    for text in kernels:
        found += _shared(text, selection)
    return tuple(found)


def _kernels(wanted: int, got: int) -> Diagnostic:
    what = f"{got} kernel{'s' * (got != 1)}"
    return _error("EATSS-R020", f"PPCG generated {what}, sizes were selected for {wanted}", _CUT)


def _tile(kernel: KernelSelection, used: Mapping[int, tuple[int, ...]]) -> Iterator[Diagnostic]:
    asked = tuple(size for _, size in kernel.tile_sizes)
    got = used.get(kernel.index, ())
    if len(asked) != len(got):
        yield _error(
            "EATSS-R020",
            f"{kernel.name}: PPCG tiles {len(got)} loops, sizes were selected for {len(asked)}",
            _CUT,
        )
    elif asked != got and not kernel.keeps_default:
        yield _error(
            "EATSS-R021",
            f"{kernel.name}: PPCG took the tile {_by(got)}, {_by(asked)} was asked for",
            _SIZES,
        )


def _block(kernel: KernelSelection, launched: tuple[int, int, int]) -> Iterator[Diagnostic]:
    asked = tuple(size for _, size in kernel.block)
    got = tuple(reversed(launched[: len(asked)]))
    further = launched[len(asked) :]
    if got == asked and set(further) <= {1}:
        return
    message = f"{kernel.name}: PPCG launches blocks of {_by(got)}, {_by(asked)} was asked for"
    if set(further) <= {1} and all(one <= most for one, most in zip(got, asked, strict=True)):
        yield Diagnostic(
            code="EATSS-R023",
            severity=Severity.WARNING,
            message=message,
            hint="PPCG gives a block no more threads than a tile or the loop has points",
        )
    else:
        yield _error("EATSS-R022", message, _SIZES)


def _used_block(
    kernel: KernelSelection, used: Mapping[int, tuple[int, ...]]
) -> Iterator[Diagnostic]:
    asked = tuple(size for _, size in kernel.block)
    got = used.get(kernel.index, asked)
    if got != asked:
        message = f"{kernel.name}: PPCG took blocks of {_by(got)}, {_by(asked)} was asked for"
        yield _error("EATSS-R022", message, _SIZES)


def _shared(text: KernelText, selection: Selection) -> Iterator[Diagnostic]:
    keeps = selection.keeps_default
    most = PPCG_SHARED_BYTES if keeps else selection.ppcg_max_shared_memory
    if text.shared_bytes > most:
        yield _error(
            "EATSS-R024",
            f"{text.name} has {text.shared_bytes} bytes of shared memory, at most {most} were "
            "allowed",
            "this PPCG does not take --max-shared-memory as PPCG 0.09 does",
        )


def _by(sizes: Sequence[int]) -> str:
    return " x ".join(map(str, sizes)) or "nothing"


def _error(code: str, message: str, hint: str) -> Diagnostic:
    return Diagnostic(code=code, message=message, hint=hint)
