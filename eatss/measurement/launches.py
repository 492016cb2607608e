"""``Program`` and sizes in, the launches of one run out, as the generated host code makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.program import Entry, HostIf, HostStep, KernelCode, Launch, Program, evaluate
from eatss.program.expression import SizePairs, Sizes
from eatss.verify.element_types import limits_of

MOST_LAUNCHES = 200_000
"""A run of more launches is not captured: that takes seconds, and graphs gigabytes of memory."""


@frozen
class ResolvedLaunch:
    """A launch with every number known.

    ``shared_bytes`` is dynamic shared memory a block. ``arguments`` are the names the kernel
    takes, in order: arguments and temporaries of entry number ``entry``, sizes and counters of
    host loops. ``integers`` are the values of the latter two, of the type of the program's
    indices.
    """

    entry: int
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[str, ...]
    integers: SizePairs


def refusal(program: Program, sizes: Sizes) -> str:
    """Say which assumption of an entry the sizes break, "" if none."""
    for entry in program.entries:
        for argument in entry.arguments:
            if argument.role != "parameter":
                continue
            least, most = limits_of(argument)
            if not least <= sizes[argument.name] <= most:
                return f"{argument.name}={sizes[argument.name]} is no {argument.element_type}"
        for assumption in entry.assumptions:
            if not evaluate(assumption.condition, sizes):
                return assumption.message
    return ""


def launches(program: Program, sizes: Sizes) -> Iterator[ResolvedLaunch]:
    """Yield the launches of one run: all entries in order, the values of all parameters given.

    A grid with an extent that is not positive launches nothing.
    """
    kernels = {kernel.name: kernel for kernel in program.kernels}
    for number, entry in enumerate(program.entries):
        yield from entry_launches(entry, number, kernels, sizes)


def entry_launches(
    entry: Entry, number: int, kernels: Mapping[str, KernelCode], sizes: Sizes
) -> Iterator[ResolvedLaunch]:
    """Yield the launches of one entry, the ``number``-th of its program."""

    def walked(steps: Sequence[HostStep], values: Sizes) -> Iterator[ResolvedLaunch]:
        for step in steps:
            if isinstance(step, Launch):
                x, y, z = (evaluate(extent, values) for extent in step.grid)
                if min(x, y, z) > 0:
                    kernel = kernels[step.kernel]
                    passed = kernel.arguments
                    yield ResolvedLaunch(
                        entry=number,
                        kernel=kernel.name,
                        grid=(x, y, z),
                        block=kernel.block,
                        shared_bytes=kernel.shared_bytes if kernel.dynamic_shared else 0,
                        arguments=passed,
                        integers=tuple((name, values[name]) for name in passed if name in values),
                    )
            elif isinstance(step, HostIf):
                if evaluate(step.condition, values):
                    yield from walked(step.body, values)
            else:
                lower, upper = evaluate(step.lower, values), evaluate(step.upper, values)
                for counter in range(lower, upper + 1, step.step):
                    yield from walked(step.body, {**values, step.counter: counter})

    return walked(entry.body, sizes)


def complete_sizes(program: Program, given: Sizes) -> dict[str, int]:
    """Return values of all parameters, the defaults where none is given.

    Raises:
        InputError: ``EATSS-E072`` there is no such size, ``EATSS-E073`` one has no value.
    """
    names = [parameter.name for parameter in program.parameters]
    for name in given:
        if name not in names:
            raise input_error(
                "EATSS-E072",
                f"'{program.name}' has no size '{name}'",
                hint=f"its sizes are {', '.join(names)}"
                if names
                else "all its sizes are fixed; generate it without -D for them",
            )
    values: dict[str, int] = {}
    for parameter in program.parameters:
        value = given.get(parameter.name, parameter.default)
        if value is None:
            raise input_error(
                "EATSS-E073",
                f"size '{parameter.name}' of '{program.name}' has no value",
                hint=f"give it, like --size {parameter.name}=1000",
            )
        values[parameter.name] = value
    return values
