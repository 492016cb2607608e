"""What PPCG takes on its command line.

PPCG numbers kernels from 0 in launch order and reads ``--sizes`` as an isl union map from
``kernel[number]`` to ``tile[…]``, ``block[…]`` and ``grid[…]``, outermost entry first. The leading
parallel members of a band, at most three, map to threads; the last of them to
``threadIdx.x``. PPCG's own block sizes (512, 32 × 16, 32 × 4 × 4) need not launch where
a thread takes many registers, so sizes of ours always stand beside the tile.
"""

from __future__ import annotations

from eatss.diagnostics import Diagnostic, Severity, input_error
from eatss.model.selection import KernelSelection, Selection

PPCG_SHARED_BYTES = 8192
"""PPCG's ``--max-shared-memory`` where it is told nothing."""


def ppcg_sizes(selection: Selection) -> str:
    """Return the argument of ``ppcg --sizes``.

    Kernels that run in one thread have nothing to size and are left out, and so are those that
    keep PPCG's own sizes.

    Raises:
        InputError: ``EATSS-M016``, the sizes were selected for generated code.
    """
    _check_target(selection)
    entries = [
        entry
        for kernel in selection.kernels
        if kernel.tile_sizes and not kernel.keeps_default
        for entry in _entries(kernel)
    ]
    return f"{{ {'; '.join(entries)} }}" if entries else "{ }"


def ppcg_max_shared_memory(selection: Selection) -> int:
    """Return the argument of ``ppcg --max-shared-memory``, in bytes.

    PPCG has one limit for the whole program, so it is the largest of the kernels'
    limits, and 0 where no kernel uses shared memory. PPCG declares shared arrays
    statically, which never gives a block more than the default limit of the card.
    """
    if selection.ppcg_options is not None:
        return selection.ppcg_options.max_shared_memory
    limits = [kernel.shared_limit_bytes for kernel in selection.kernels if kernel.tile_sizes]
    return min(max(limits, default=0), selection.static_shared_bytes)


def sizes_alone(selection: Selection) -> tuple[Diagnostic, ...]:
    """Return a warning where ``--sizes`` is not all that a predicted selection asks of PPCG."""
    options = selection.ppcg_options
    if options is None or selection.keeps_default:
        return ()
    if options.max_shared_memory == PPCG_SHARED_BYTES and not options.unroll_gpu_tile:
        return ()
    return (
        Diagnostic(
            code="EATSS-M015",
            severity=Severity.WARNING,
            message="these sizes were chosen together with --max-shared-memory="
            f"{options.max_shared_memory}, which PPCG is not told by --sizes",
            hint="take --format ppcg-args, which prints both",
        ),
    )


def ppcg_arguments(selection: Selection) -> tuple[str, ...]:
    """Return all arguments of PPCG that the selection needs, none where PPCG's default stands.

    Raises:
        InputError: ``EATSS-M016``, the sizes were selected for generated code.
    """
    _check_target(selection)
    if selection.keeps_default:
        return ()
    arguments = [f"--max-shared-memory={ppcg_max_shared_memory(selection)}"]
    if selection.ppcg_options is not None and selection.ppcg_options.unroll_gpu_tile:
        arguments.append("--unroll-gpu-tile")
    return (*arguments, f"--sizes={ppcg_sizes(selection)}")


def _check_target(selection: Selection) -> None:
    if selection.options.target != "ppcg":
        raise input_error(
            "EATSS-M016",
            f"these sizes were selected for the target {selection.options.target}, not for PPCG",
            hint="select for the target ppcg",
        )


def _entries(kernel: KernelSelection) -> list[str]:
    domain = f"kernel[{kernel.index}]"
    entries = [f"{domain} -> tile[{', '.join(str(size) for _, size in kernel.tile_sizes)}]"]
    if kernel.block:
        entries.append(f"{domain} -> block[{', '.join(str(size) for _, size in kernel.block)}]")
    return entries
