"""The README beside a program that PPCG generated."""

from __future__ import annotations

from eatss.program import Program


def ppcg_readme(program: Program) -> str:
    """Return the README in Markdown."""
    kernels = "\n".join(
        f"| `{kernel.name}` | {' × '.join(map(str, kernel.block))} | "
        f"{', '.join(f'{loop} = {size}' for loop, size in kernel.tile_sizes) or 'none'} | "
        f"{kernel.shared_bytes} |"
        for kernel in program.kernels
    )
    return (
        f"# {program.name}, by PPCG\n\n"
        f"What PPCG generated from `{program.original.file}`, made ready to be checked and "
        "measured: its kernels as they are, launched as its host code launches them. Copies "
        "between host and card are not part of it. In this folder:\n\n"
        "```\neatss verify .\neatss measure .\n```\n\n"
        "| file | what it is |\n| --- | --- |\n"
        f"| `{program.file}` | PPCG's kernels, and launchers |\n"
        "| `plan.json` | the launch plan: arguments, grids, blocks, host loops |\n"
        f"| `{program.original.file}` | the C source |\n\n"
        "| kernel | block (x, y, z) | tile | shared memory, bytes |\n"
        f"| --- | --- | --- | --- |\n{kernels}\n"
    )
