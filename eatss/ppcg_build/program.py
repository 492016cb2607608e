"""What PPCG generated as a ``Program``: its kernels, launched as its host code launches them.

So ``eatss verify``, ``measure`` and ``compare`` take it like a program of eatss: the device part,
without the copies between host and card.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eatss.analysis.program import AnalysedProgram, AnalysedScop
from eatss.cuda.file_text import entry_texts, operators_of_host
from eatss.cuda.preamble import preamble
from eatss.cuda.signature import entry_arguments, outside_arrays, taken_names, temporaries_of
from eatss.frozen import frozen
from eatss.gpu import GpuProfile
from eatss.kernel.uses import Needs
from eatss.lower.arrays import DeviceArray, device_arrays
from eatss.lower.assumptions import assumptions_of
from eatss.ppcg_build.host_code import DeviceMemory, HostRegion, Launched, device_name
from eatss.ppcg_build.kernel_code import SHARED_MACRO, KernelFile, KernelText, own_type
from eatss.ppcg_build.refusal import NotUnderstoodError
from eatss.program import (
    INTEGERS,
    Assumption,
    Constant,
    Entry,
    HostLoop,
    IntExpr,
    KernelCode,
    Launch,
    Original,
    Parameter,
    Program,
    every_step,
    names_in,
    substitute,
)
from eatss.program import Name as NameOf
from eatss.schedule.names import NameTable
from eatss.scops import Scop
from eatss.work.least_work import work_of


@frozen
class PpcgCode:
    """What PPCG generated, read: its host code, its kernels, and tile sizes by kernel number."""

    regions: tuple[HostRegion, ...]
    kernels: KernelFile
    tiles: Mapping[int, tuple[int, ...]]


def program_of(
    code: PpcgCode,
    analysed: AnalysedProgram,
    profile: GpuProfile,
    *,
    name: str,
    original: Original,
) -> Program:
    """Return the program that PPCG's code is.

    Args:
        code: what PPCG generated.
        analysed: the regions of the source at the sizes that PPCG was given.
        profile: the card it is for.
        name: what the program is called.
        original: where the C is.

    Raises:
        NotUnderstoodError: host code, kernels and source do not fit together.
    """
    if len(code.regions) != len(analysed.scops):
        raise NotUnderstoodError(
            f"{len(analysed.scops) - len(code.regions)} of {len(analysed.scops)} regions "
            "run on the host"
        )
    texts = {kernel.name: kernel for kernel in code.kernels.kernels}
    single = len(analysed.scops) == 1
    entries: list[Entry] = []
    kernels: list[KernelCode] = []
    for region, scop in zip(code.regions, analysed.scops, strict=True):
        reader = _Region(region, scop)
        entries.append(reader.entry(single=single))
        for launched in region.launches:
            tiles = _tiles(launched, analysed, code.tiles)
            text = texts.get(launched.kernel)
            if text is None or len(text.parameters) != len(launched.arguments):
                raise NotUnderstoodError(f"'{launched.kernel}' is launched, not defined so")
            kernels.append(reader.kernel(launched, text, analysed, tiles))
    program = Program(
        name=name,
        file=f"{name}.cu",
        text="",
        original=original,
        gpu=profile.name,
        compute_capability=profile.compute_capability[0] * 10 + profile.compute_capability[1],
        dtype=analysed.dtype,
        strict_fp=False,
        index_bits=32,
        flags=(),
        parameters=tuple(_parameters(entries)),
        kernels=tuple(kernels),
        entries=tuple(entries),
    )
    return _with_text(program, code.kernels)


def _with_text(program: Program, kernels: KernelFile) -> Program:
    head = (
        f"// {program.file}: made by eatss of what PPCG generated from {program.original.file}.\n"
        "// The kernels are PPCG's; the launchers do what its host code does on the card.\n"
    )
    needs = Needs(operators=frozenset(operators_of_host(program)))
    host = (
        f"#ifndef __CUDACC_RTC__\n\n{entry_texts(program, const=False)}\n#endif // __CUDACC_RTC__\n"
    )
    parts = (head, preamble(needs), SHARED_MACRO, kernels.text, host)
    return replace(program, text="\n".join(parts))


class _Region:
    """A region of the source beside the host code that PPCG put in its place."""

    def __init__(self, region: HostRegion, analysed: AnalysedScop) -> None:
        self._region = region
        self._analysed = analysed
        scop = analysed.scop
        self._scop = scop
        written = frozenset(s.write.array for s in scop.statements)
        self._written = written
        names = NameTable((scop.function, *scop.parameters))
        steps = every_step(region.steps)
        names.reserve(*(one.counter for one, _ in steps if isinstance(one, HostLoop)))
        self._arrays = device_arrays(scop, names)
        names.reserve(*taken_names(scop))
        self._by_source = _by_source(scop, self._arrays)
        self._sizes = {d.source_name: d.name for d in scop.parameter_declarations}
        for memory in region.memory:
            self._check(memory)

    def entry(self, *, single: bool) -> Entry:
        scop = self._scop
        passed = {device_name(a) or a for one in self._region.launches for a in one.arguments}
        used = {
            key: array
            for key, array in self._arrays.items()
            if not array.array.is_local or (array.array.source_name or array.array.name) in passed
        }
        outside = outside_arrays(scop, self._arrays)
        launcher = f"{scop.function}_cuda" if single else f"{scop.function}_{scop.index}_cuda"
        return Entry(
            launcher=launcher,
            function=scop.function,
            region=scop.index,
            whole_function=scop.whole_function,
            arguments=entry_arguments(scop, self._arrays, self._written),
            temporaries=temporaries_of(scop, used),
            assumptions=(
                *assumptions_of(scop, used, sizes=None),
                *(_not_empty(extent) for extent in self._open_extents()),
            ),
            body=tuple(INTEGERS.rebuilt(one, self._renamed) for one in self._region.steps),
            work=work_of(
                self._analysed.scheduled.scop, self._analysed.scheduled.dependences, outside
            ),
        )

    def kernel(
        self,
        launched: Launched,
        text: KernelText,
        analysed: AnalysedProgram,
        tiles: tuple[tuple[str, int], ...],
    ) -> KernelCode:
        number = _number(launched)
        facts = {fact.index: fact for fact in analysed.facts}
        return KernelCode(
            name=launched.kernel,
            statements=facts[number].statements if number in facts else (),
            block=launched.block,
            shared_bytes=text.shared_bytes,
            dynamic_shared=False,
            registers=0,
            arguments=tuple(map(self._argument, launched.arguments)),
            tile_sizes=tiles,
            notes=("generated by PPCG",),
        )

    def _open_extents(self) -> tuple[IntExpr, ...]:
        """Return the extents of grids that sizes decide, of launches that always happen."""
        extents = [
            self._renamed(extent)
            for step in self._region.steps
            if isinstance(step, Launch)
            for extent in step.grid
        ]
        return tuple(dict.fromkeys(e for e in extents if not isinstance(e, Constant)))

    def _argument(self, passed: str) -> str:
        """Return what the entry calls an argument of a launch."""
        name = device_name(passed)
        if name is not None:
            if name not in self._by_source:
                raise NotUnderstoodError(f"the source has no array '{name}'")
            return self._by_source[name].name
        if passed in self._by_source:
            return self._by_source[passed].name
        return self._sizes.get(passed, passed)

    def _renamed(self, expression: IntExpr) -> IntExpr:
        new = {name: NameOf(self._sizes.get(name, name)) for name in names_in(expression)}
        return substitute(expression, new)

    def _check(self, memory: DeviceMemory) -> None:
        """Refuse memory that is laid out otherwise than the array that it stands for."""
        array = self._by_source.get(memory.name)
        if array is None:
            raise NotUnderstoodError(f"the source has no array '{memory.name}'")
        element = array.array.element_type.value
        if own_type(memory.element_type) not in (None, element):  # names of types are the source's
            raise NotUnderstoodError(
                f"'{memory.name}' is of type {memory.element_type} there, of {element} here"
            )
        extents = tuple(map(self._renamed, memory.extents))
        first = (extents[:1], array.shape[:1])
        numbers = [e[0].value for e in first if e and isinstance(e[0], Constant)]
        too_few = len(numbers) == 2 and numbers[0] > numbers[1]
        if len(extents) != len(array.shape) or extents[1:] != array.shape[1:] or too_few:
            raise NotUnderstoodError(f"'{memory.name}' has another shape there than here")


def _not_empty(extent: IntExpr) -> Assumption:
    return Assumption(
        condition=extent >= 1,
        message="PPCG's code fails where there is nothing to do",
    )


def _by_source(scop: Scop, arrays: Mapping[str, DeviceArray]) -> dict[str, DeviceArray]:
    """Return arrays by the names that they have in C, which PPCG keeps."""
    found: dict[str, DeviceArray] = {}
    for array in arrays.values():
        name = array.array.source_name or array.array.name
        if name in found:
            raise NotUnderstoodError(f"two variables of the region in {scop.function} are '{name}'")
        found[name] = array
    return found


def _number(launched: Launched) -> int:
    digits = launched.kernel.removeprefix("kernel")
    if not digits.isdigit():
        raise NotUnderstoodError(f"a kernel is called '{launched.kernel}'")
    return int(digits)


def _tiles(
    launched: Launched, analysed: AnalysedProgram, used: Mapping[int, tuple[int, ...]]
) -> tuple[tuple[str, int], ...]:
    number = _number(launched)
    loops = next((fact.loops for fact in analysed.facts if fact.index == number), ())
    return tuple(zip((loop.name for loop in loops), used.get(number, ()), strict=False))


def _parameters(entries: Sequence[Entry]) -> Iterator[Parameter]:
    """Yield the sizes that are arguments, each once; all others are numbers in PPCG's code."""
    arguments = (argument for entry in entries for argument in entry.arguments)
    names = dict.fromkeys(one.name for one in arguments if one.role == "parameter")
    for name in names:
        yield Parameter(name=name, kind="argument", default=None)
