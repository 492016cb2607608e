"""C and C++ text around the original and around the generated program, to be compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eatss.program import Argument, Entry, Program

_LAST_WORD = re.compile(r"\b([A-Za-z_]\w*)\s*$")

_HEAD = {
    "c": "#define EATSS_ANY(k) (eatss_p[k])\n"
    "#define EATSS_IS_POINTER(a, T) \\\n"
    "    __builtin_types_compatible_p(__typeof__(a), T *)\n",
    "c++": "#define EATSS_ANY(k) (eatss_any{eatss_p[k]})\n"
    "#define EATSS_IS_POINTER(a, T) eatss_is_pointer(a)\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CallShape:
    """How the original's function takes its arguments; what a plan does not say is found by trial.

    ``toggled`` are positions at which a value is passed where a pointer would be expected, or the
    other way round; ``extra`` counts parameters after the last one the region uses.
    """

    toggled: frozenset[int] = frozenset()
    extra: int = 0


def size_variables(names: Iterable[str], *, language: str) -> str:
    """Return definitions of the variables that stand for macro sizes where they may vary."""
    declarations = "".join(f"int {size_variable(name)};\n" for name in names)
    return f'extern "C" {{\n{declarations}}}\n' if language == "c++" else declarations


def size_variable(name: str) -> str:
    """Return the variable a macro size is defined as."""
    return f"eatss_size_{name}"


def original_text(
    program: Program,
    directory: Path,
    shapes: Mapping[int, CallShape],
    *,
    language: Literal["c", "c++"],
    variables: str = "",
) -> str:
    """Return a file that includes the original and exports a call for every entry.

    ``eatss_call_N(void **arguments)`` calls the function of entry ``N`` with values taken from, and
    arrays at, the pointers, in the order of the entry's arguments; globals are set before and
    read back afterwards. As C++, which has no arrays of variable size among parameters, integer
    parameters of the function are renamed: their names are to be defined as their values.
    """
    path = (directory / program.original.file).absolute()
    included = f'#include "{path}"\n'
    if language == "c++" and any(parameter.kind == "argument" for parameter in program.parameters):
        body = path.read_text(encoding="utf-8", errors="surrogateescape")
        for entry in program.entries:
            body = _renamed(body, entry)
        included = f'#line 1 "{path}"\n{body}\n'
    text = variables + included + _HEAD[language]
    text += '#pragma GCC diagnostic error "-Wint-conversion"\n' if language == "c" else ""
    export = 'extern "C" ' if language == "c++" else ""
    for number, entry in enumerate(program.entries):
        text += f"{export}void eatss_call_{number}(void **eatss_p)\n{{\n"
        for k, argument in enumerate(entry.arguments):
            if argument.source == "global":
                text += _put(k, argument, entry)
        text += f"    {entry.function}({_passed(entry, shapes.get(number, CallShape()))});\n"
        for k, argument in enumerate(entry.arguments):
            if argument.source == "global" and argument.writes:
                text += _get(k, argument)
        text += "}\n"
    return text


def _put(k: int, argument: Argument, entry: Entry) -> str:
    name, c_type = argument.source_name, argument.element_type
    copy = f"__builtin_memcpy((void *)&{name}, eatss_p[{k}], sizeof {name})"
    if argument.role in ("scalar", "parameter"):
        return f"    {copy};\n"
    return (
        f"    if (EATSS_IS_POINTER({name}, {c_type})) *(void **)(void *)&{name} = eatss_p[{k}];\n"
        f"    else {copy};\n"
    )


def _get(k: int, argument: Argument) -> str:
    name, c_type = argument.source_name, argument.element_type
    return (
        f"    if (!EATSS_IS_POINTER({name}, {c_type})) "
        f"__builtin_memcpy(eatss_p[{k}], (const void *)&{name}, sizeof {name});\n"
    )


def _passed(entry: Entry, shape: CallShape) -> str:
    """Return the arguments of the call; parameters the region does not use are 0."""
    at = {
        argument.position: (k, argument)
        for k, argument in enumerate(entry.arguments)
        if argument.source == "parameter" and argument.position is not None
    }
    texts: list[str] = []
    for position in range(max(at, default=-1) + 1 + shape.extra):
        if position not in at:
            texts.append("0")
            continue
        k, argument = at[position]
        by_pointer = (argument.role in ("array", "cell")) != (position in shape.toggled)
        texts.append(
            f"EATSS_ANY({k})" if by_pointer else f"*({argument.element_type} *)eatss_p[{k}]"
        )
    return ", ".join(texts)


def _renamed(text: str, entry: Entry) -> str:
    """Return a C text in which the integer parameters of an entry's function have other names."""
    names = {a.source_name for a in entry.arguments if a.role == "parameter"}
    for head in re.finditer(rf"\b{re.escape(entry.function)}\s*\(", text):
        depth, end = 1, head.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        if not text[end:].lstrip().startswith("{"):
            continue  # a declaration or a call
        declared = [
            _LAST_WORD.sub(r"eatss_given_\1", part)
            if (word := _LAST_WORD.search(part)) and word[1] in names
            else part
            for part in text[head.end() : end - 1].split(",")
        ]
        return text[: head.end()] + ",".join(declared) + text[end - 1 :]
    return text


def gpu_text(program: Program, directory: Path) -> str:
    """Return the generated text with what a host without the CUDA runtime's headers calls."""
    path = (directory / program.file).absolute()
    return f'#include "{path}"\n' + _GPU_DRIVER


_GPU_DRIVER = r"""
#include <cuda_runtime.h>

extern "C" int eatss_device_count(void)
{
    int count = 0;
    return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}
extern "C" int eatss_device_alloc(void **pointer, unsigned long bytes)
{
    return (int)cudaMalloc(pointer, bytes);
}
extern "C" int eatss_device_free(void *pointer) { return (int)cudaFree(pointer); }
extern "C" int eatss_device_write(void *device, const void *host, unsigned long bytes)
{
    return (int)cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice);
}
extern "C" int eatss_device_read(void *host, const void *device, unsigned long bytes)
{
    return (int)cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
}
extern "C" int eatss_device_wait(void) { return (int)cudaDeviceSynchronize(); }
extern "C" const char *eatss_device_error(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}
"""
