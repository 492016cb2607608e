"""``Program`` and sizes in, machine code for a card out: by NVRTC in this process, kept on disk."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from eatss.base.cache import Cache, key_of, versions
from eatss.base.diagnostics import input_error
from eatss.base.frozen import frozen
from eatss.measurement import nvrtc
from eatss.program import Program
from eatss.program.source_names import size_text
from eatss.program.tokens import definitions

_KIND = "cubin-jit"
_STANDARD = "--std=c++17"
_PACKAGES = ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu12")


def size_constant(name: str) -> str:
    """Return what the machine code for all sizes calls the memory of a size."""
    return f"eatss_size_{name}"


def cubin_of(
    program: Program,
    sizes: Mapping[str, int],
    capability: int,
    cupy: Any,
    cache: Cache | None,
    *,
    specialize: bool,
) -> bytes:
    """Return the machine code of a program.

    Args:
        program: what to compile.
        sizes: those of the problem.
        capability: of the card, as in 90 for 9.0.
        cupy: the module, which knows where NVRTC is.
        cache: what was compiled before.
        specialize: whether the code is for these sizes alone: macros are compiled in, of
            arguments the compiler is told. Else macros are read from constants of the module, and
            the code is for all sizes.

    Raises:
        InputError: ``EATSS-J018``, NVRTC refuses the text or is not there.
    """
    wanted = _Request.of(program, sizes, specialize=specialize)
    options = (f"-arch=sm_{capability}", _STANDARD, *program.flags, *wanted.options)
    key = key_of("cubin", program.file, program.text, wanted, options, toolkit(cupy), versions())
    kept = None if cache is None else cache.get(_KIND, key)
    if kept is not None:
        return kept
    text = wanted.text(program)
    try:
        made, log = nvrtc.compile_text(
            nvrtc.Request(text=text, name=program.file, options=options, target="")
        )
    except Exception as error:  # CuPy and its libraries raise classes of their own
        made, log = None, " ".join(str(error).split())
    if made is None:
        raise input_error(
            "EATSS-J018",
            f"NVRTC does not compile '{program.name}': {log[:400]}",
            hint="'eatss doctor' says what this machine has",
        )
    if cache is not None:
        cache.put(_KIND, key, made, about=f"{program.name} for sm_{capability}")
    return made


@frozen
class _Request:
    """What is told to the compiler besides the text.

    ``defined`` are macros with what they stand for, ``declared`` sizes in constant memory,
    ``known`` sizes that kernels are passed, whose value it may count on.
    """

    defined: tuple[tuple[str, str], ...]
    declared: tuple[str, ...]
    known: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, program: Program, sizes: Mapping[str, int], *, specialize: bool) -> _Request:
        macros = program.macros
        if not specialize:
            return cls(
                defined=tuple((one.macro, size_constant(one.name)) for one in macros),
                declared=tuple(size_constant(one.name) for one in macros),
                known=(),
            )
        return cls(
            defined=tuple((one.macro, _number(sizes[one.name])) for one in macros),
            declared=(),
            known=tuple(
                (one.name, sizes[one.name]) for one in program.parameters if one.kind != "macro"
            ),
        )

    @property
    def options(self) -> tuple[str, ...]:
        """The options of the compiler."""
        return tuple(f"-D{name}={value}" for name, value in self.defined)

    def text(self, program: Program) -> str:
        """Return the text of a program with declarations, and with what is known of sizes."""
        # in braces: without, extern "C" declares what another unit would have to define
        lines = [f'extern "C" {{ __constant__ int {name}; }}\n' for name in self.declared]
        head = "".join([*lines, f'#line 1 "{program.file}"\n'] if lines else lines)
        return head + _with_known(program, dict(self.known))


def _with_known(program: Program, sizes: Mapping[str, int]) -> str:
    """Return a text whose kernels say what sizes they are passed: as fast as if compiled in."""
    text = program.text
    arguments = {kernel.name: kernel.arguments for kernel in program.kernels}
    for function in reversed(definitions(text, arguments)):
        said = "".join(
            f" __builtin_assume({size_text(name)} == {_number(sizes[name])});"
            for name in arguments[function.name]
            if name in sizes
        )
        place = text.rindex("{", 0, function.body[0].start) + 1
        text = text[:place] + said + text[place:]
    return text


def toolkit(cupy: Any) -> tuple[str, ...]:
    """Return what tells versions of the compiler apart.

    A package says its version without being loaded; NVRTC of another origin has to be asked.
    """
    found = [f"runtime {cupy.cuda.runtime.runtimeGetVersion()}", f"cupy {cupy.__version__}"]
    known = len(found)
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    if len(found) == known:
        found.append(f"nvrtc {cupy.cuda.nvrtc.getVersion()}")
    return (*found, sys.platform)


def _number(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"
