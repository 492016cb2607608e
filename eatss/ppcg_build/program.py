"""What PPCG generated as a ``Program``, and beside what it was asked for.

So ``eatss verify``, ``measure`` and ``compare`` take it like a program of eatss: the device part,
without the copies between host and card. The code of the kernels stays as PPCG wrote it, token by
token, but for four things: a kernel is ``extern "C"``, so that it is found by its name; shared
arrays are declared by a macro, so that a CPU can watch them; the header, which has nothing but
declarations, is left out; and for NVRTC, which knows no statements in expressions, the least and
the largest of two have a plain macro.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from math import prod
from types import MappingProxyType

from eatss.analysis.analyse import AnalysedProgram, AnalysedScop
from eatss.analysis.operations import work_of
from eatss.base.diagnostics import Diagnostic, Diagnostics, Severity
from eatss.base.frozen import Names, Numbers, frozen
from eatss.cards import GpuProfile
from eatss.choose.selection import PPCG_SHARED_BYTES, KernelSelection, Selection
from eatss.cuda.host import entry_arguments, outside_arrays, taken_names, temporaries_of
from eatss.cuda.main_text import entry_texts
from eatss.cuda.preamble import preamble
from eatss.lower.arrays import DeviceArray, device_arrays
from eatss.lower.assumptions import assumptions_of
from eatss.lower.pieces import NameTable
from eatss.polyhedral.expression import ElementType
from eatss.polyhedral.scop import Scop
from eatss.ppcg_build.host_code import (
    DeviceMemory,
    HostRegion,
    Launched,
    NotUnderstoodError,
    device_name,
)
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
from eatss.program.expression import IntExprs

SHARED_MACRO = """\
// A shared array; on a CPU it begins at a place of the block's shared memory, in bytes.
#ifndef EATSS_CPU
#define EATSS_SHARED_AT(place, type, name, extents) __shared__ type name extents
#endif
"""

_PLAIN = {
    "ppcg_min(x,y)": "((x) < (y) ? (x) : (y))",
    "ppcg_max(x,y)": "((x) > (y) ? (x) : (y))",
}
"""What PPCG defines these macros as where it may use no extension of GNU C."""

_BYTES = {kind.value: kind.size_bytes for kind in ElementType}
_OTHER_SPELLINGS = {"char": ElementType.INT8.value}


@frozen
class SharedArray:
    """A shared array of a kernel: its declaration, and where it begins, in bytes."""

    name: str
    element_type: str
    extents: Numbers
    place: int

    @property
    def bytes(self) -> int:
        """Its size."""
        return _BYTES[self.element_type] * prod(self.extents)


@frozen
class KernelText:
    """A kernel of a file: names of its parameters in order, and its shared arrays."""

    name: str
    parameters: Names
    shared: tuple[SharedArray, ...]

    @property
    def shared_bytes(self) -> int:
        """Shared memory that a block of it has."""
        return max((array.place + array.bytes for array in self.shared), default=0)


@frozen
class KernelFile:
    """The kernels of a file in their order, and its text for a card and a CPU."""

    kernels: tuple[KernelText, ...]
    text: str


def own_type(words: str, names: Mapping[str, str] = MappingProxyType({})) -> str | None:
    """Return how a type of elements is spelled here, ``None`` for a name that is not known.

    Args:
        words: the type as PPCG spells it, which may be a name of the source's.
        names: what such names stand for.
    """
    for _ in names:
        words = names.get(words, words)
    words = _OTHER_SPELLINGS.get(words, words)
    return words if words in _BYTES else None


_KERNEL_NAME = re.compile(r"\b__global__\s+\w+\s+(\w+)")
_CHANGED = re.compile(
    r"//.*|/\*[\s\S]*?\*/|\"(?:[^\"\\\n]|\\.)*\""
    r"|^[ \t]*\#[ \t]*include\b(?:\\\n|.)*"
    r"|^[ \t]*\#define[ \t]+(?P<macro>ppcg_m(?:in|ax)\(x,y\))[ \t]*(?P<body>(?:\\\n|.)*)"
    r"|\btypedef\s+(?P<type>[^;{]*?)\s*\b(?P<alias>\w+)\s*;"
    r"|\b__global__\b(?:\s+void\s+(?P<kernel>\w+)\s*\((?P<parameters>[^)]*)\))?"
    r"|\b__shared__\s+(?P<shared>[^;]*)",
    re.MULTILINE,
)
"""What of a kernel file is read, or stands otherwise in the text of the program; comments first."""

_SHARED = re.compile(r"(?P<type>[\w\s]+?)\s+(?P<name>\w+)\s*(?P<extents>(?:\[ ?\d+ ?\] ?)*)")


def kernel_names(text: str) -> Names:
    """Return the names of the kernels of a file in their order, whatever else is in it."""
    return tuple(_KERNEL_NAME.findall(text))


def read_kernels(text: str) -> KernelFile:
    """Read a kernel file that PPCG wrote.

    Raises:
        NotUnderstoodError: it is of no known form.
    """
    types: dict[str, str] = {}
    kernels: list[KernelText] = []

    def changed(match: re.Match[str]) -> str:
        whole: str = match[0]
        if match["alias"]:
            types[match["alias"]] = " ".join(match["type"].split())
        elif match["shared"] and kernels:
            array = _shared_array(kernels[-1], " ".join(match["shared"].split()), types)
            kernels[-1] = replace(kernels[-1], shared=(*kernels[-1].shared, array))
            extents = "".join(f"[{one}]" for one in array.extents)
            return f"EATSS_SHARED_AT({array.place}, {array.element_type}, {array.name}, {extents})"
        elif whole.startswith("__global__"):
            kernels.append(_kernel(match))
            return f'extern "C" {whole}'
        elif match["macro"] and match["body"] != (body := _PLAIN[match["macro"]]):
            plain = f"#define {match['macro']} {body}"
            return f"#ifdef __CUDACC_RTC__\n{plain}\n#else\n{whole}\n#endif"
        return "" if whole.lstrip().startswith("#") and not match["macro"] else whole

    whole = _CHANGED.sub(changed, text).strip() + "\n"
    return KernelFile(kernels=tuple(kernels), text=whole)


def _kernel(match: re.Match[str]) -> KernelText:
    name, parameters = match["kernel"], (match["parameters"] or "").strip()
    if name is None:
        raise NotUnderstoodError("'__global__' begins no kernel of a known form")
    if "[" in parameters or "(" in parameters:
        raise NotUnderstoodError(
            f"a parameter of {name} is an array of several dimensions; PPCG passes plain "
            "pointers without --no-linearize-device-arrays"
        )
    names = [re.findall(r"\w+", one)[-1] for one in parameters.split(",") if parameters]
    return KernelText(name=name, parameters=tuple(names), shared=())


def _shared_array(kernel: KernelText, declared: str, types: Mapping[str, str]) -> SharedArray:
    """Return a shared array, placed after those before it."""
    match = _SHARED.fullmatch(declared)
    element = own_type(match["type"], types) if match else None
    if match is None or element is None:
        raise NotUnderstoodError(f"{kernel.name} declares '{declared}' in shared memory")
    size = _BYTES[element]
    return SharedArray(
        name=match["name"],
        element_type=element,
        extents=tuple(map(int, re.findall(r"\d+", match["extents"]))),
        place=-(-kernel.shared_bytes // size) * size,
    )


@frozen
class PpcgCode:
    """What PPCG generated, read: its host code, its kernels, and tile sizes by kernel number."""

    regions: tuple[HostRegion, ...]
    kernels: KernelFile
    tiles: Mapping[int, Numbers]


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
    facts = {fact.index: fact for fact in analysed.facts}
    single = len(analysed.scops) == 1
    entries = []
    kernels = []
    for region, scop in zip(code.regions, analysed.scops, strict=True):
        reader = _Region(region, scop)
        entries.append(reader.entry(single=single))
        for launched in region.launches:
            digits = launched.kernel.removeprefix("kernel")
            if not digits.isdigit():
                raise NotUnderstoodError(f"a kernel is called '{launched.kernel}'")
            text, fact = texts.get(launched.kernel), facts.get(int(digits))
            if text is None or len(text.parameters) != len(launched.arguments):
                raise NotUnderstoodError(f"'{launched.kernel}' is launched, not defined so")
            loops = () if fact is None else tuple(loop.name for loop in fact.loops)
            kernels.append(
                KernelCode(
                    name=launched.kernel,
                    statements=() if fact is None else fact.statements,
                    block=launched.block,
                    shared_bytes=text.shared_bytes,
                    dynamic_shared=False,
                    arguments=tuple(map(reader.argument, launched.arguments)),
                    tile_sizes=tuple(zip(loops, code.tiles.get(int(digits), ()), strict=False)),
                    notes=("generated by PPCG",),
                )
            )
    arguments = chain(*(entry.arguments for entry in entries))
    sizes = dict.fromkeys(one.name for one in arguments if one.role == "parameter")
    program = Program(
        name=name,
        file=f"{name}.cu",
        text="",
        original=original,
        gpu=profile.name,
        compute_capability=profile.sm,
        dtype=analysed.dtype,
        strict_fp=False,
        index_bits=32,
        flags=(),
        # all other sizes are numbers in PPCG's code
        parameters=tuple(Parameter(name=size, kind="argument", default=None) for size in sizes),
        kernels=tuple(kernels),
        entries=tuple(entries),
    )
    head = (
        f"// {program.file}: made by eatss of what PPCG generated from {original.file}.\n"
        "// The kernels are PPCG's; the launchers do what its host code does on the card.\n"
    )
    host = (
        f"#ifndef __CUDACC_RTC__\n\n{entry_texts(program, const=False)}\n#endif // __CUDACC_RTC__\n"
    )
    parts = (head, preamble(host), SHARED_MACRO, code.kernels.text, host)
    return replace(program, text="\n".join(parts))


_EMPTY = "PPCG's code fails where there is nothing to do"


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
                *(
                    Assumption(condition=extent >= 1, message=_EMPTY)
                    for extent in self._open_extents()
                ),
            ),
            body=tuple(INTEGERS.rebuilt(one, self._renamed) for one in self._region.steps),
            work=work_of(
                self._analysed.scheduled.scop, self._analysed.scheduled.dependences, outside
            ),
        )

    def _open_extents(self) -> IntExprs:
        """Return the extents of grids that sizes decide, of launches that always happen."""
        extents = [
            self._renamed(extent)
            for step in self._region.steps
            if isinstance(step, Launch)
            for extent in step.grid
        ]
        return tuple(dict.fromkeys(e for e in extents if not isinstance(e, Constant)))

    def argument(self, passed: str) -> str:
        """Return what the entry calls an argument of a launch."""
        name = device_name(passed)
        if name is not None and name not in self._by_source:
            raise NotUnderstoodError(f"the source has no array '{name}'")
        array = self._by_source.get(name or passed)
        return self._sizes.get(passed, passed) if array is None else array.name

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


def _by_source(scop: Scop, arrays: Mapping[str, DeviceArray]) -> dict[str, DeviceArray]:
    """Return arrays by the names that they have in C, which PPCG keeps."""
    found = {}
    for array in arrays.values():
        name = array.array.source_name or array.array.name
        if name in found:
            raise NotUnderstoodError(f"two variables of the region in {scop.function} are '{name}'")
        found[name] = array
    return found


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
    tiles: Mapping[int, Numbers],
) -> Diagnostics:
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
    found = []
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


def _of_block(kernel: KernelSelection, launched: Numbers) -> Iterator[Diagnostic]:
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
