"""C and C++ text around the original and around the generated program, to be compiled."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, TypeAlias

from eatss.base.templates import template
from eatss.base.text import Edit, edited
from eatss.program import Entry, IntExpr, Name, Program
from eatss.program.expression import c_text, substitute
from eatss.program.tokens import closing, tokens

TextByName: TypeAlias = Mapping[str, str]
"""What is written for each name."""


_WORDS_OF_CPP = """
    alignas alignof catch class constexpr decltype delete explicit export friend mutable namespace
    new noexcept nullptr operator private protected public template this throw try typeid typename
    using virtual
"""
"""Words that may be names in C."""

_HEAD = {
    "c": "#define EATSS_ANY(k) (eatss_p[k])\n"
    "#define EATSS_IS_POINTER(a, T) \\\n"
    "    __builtin_types_compatible_p(__typeof__(a), T *)\n"
    "#define EATSS_IS_DECAYED(a) \\\n"
    "    __builtin_types_compatible_p(__typeof__(a), __typeof__(&(a)[0]))\n",
    "c++": "".join(f"#define {word} eatss_of_c_{word}\n" for word in _WORDS_OF_CPP.split())
    + "#define EATSS_ANY(k) (eatss_any{eatss_p[k]})\n"
    "#define EATSS_IS_POINTER(a, T) eatss_is_pointer(a)\n"
    "#define EATSS_IS_DECAYED(a) ((const void *)&(a) != (const void *)&(a)[0])\n",
}

_COPIES = r"""
#define EATSS_PUT(k, a, pointer) \
    if (pointer) *(void **)(void *)&a = eatss_p[k]; \
    else __builtin_memcpy((void *)&a, eatss_p[k], sizeof a)
#define EATSS_GET(k, a, pointer) \
    if (!(pointer)) __builtin_memcpy(eatss_p[k], (const void *)&a, sizeof a)
"""
"""What sets global variables before a call, and reads them back."""

_SWITCH = r"""
#define EATSS_ENTER(k, a, pointer) \
    if (pointer) *(void **)(void *)&a = eatss_given[k]; \
    else __builtin_memcpy((void *)&a, eatss_given[k], sizeof a)
#define EATSS_LEAVE(k, a, pointer) \
    if (!(pointer)) { eatss_home[k] = (void *)&a; eatss_home_bytes[k] = sizeof a; }
static void **eatss_given, *eatss_kept[EATSS_MOST], *eatss_unused[EATSS_MOST];
static void *eatss_home[EATSS_MOST], *eatss_back[5];
static unsigned long eatss_bytes[EATSS_MOST], eatss_home_bytes[EATSS_MOST];
static int eatss_awaited = -1, eatss_running = -1;
static inline long long eatss_min(long long a, long long b) { return a < b ? a : b; }
static inline long long eatss_max(long long a, long long b) { return a > b ? a : b; }
static inline long long eatss_floordiv(long long a, long long b)
{
    return a >= 0 ? a / b : -((b - 1 - a) / b);
}
static inline long long eatss_mod(long long a, long long b) { return a - eatss_floordiv(a, b) * b; }
static void eatss_keep(int k, unsigned long bytes)
{
    eatss_bytes[k] = bytes;
    eatss_kept[k] = __builtin_malloc(bytes + 1);
    __builtin_memcpy(eatss_kept[k], eatss_given[k], bytes);
}
static __attribute__((noinline)) void eatss_enter(void)
{
    eatss_running = eatss_awaited;
    eatss_awaited = -1;
    for (int k = 0; k < EATSS_MOST; k++) {
        if (eatss_kept[k]) __builtin_memcpy(eatss_given[k], eatss_kept[k], eatss_bytes[k]);
        eatss_home[k] = 0;
    }
}
static __attribute__((noinline, noreturn)) void eatss_leave(void)
{
    for (int k = 0; k < EATSS_MOST; k++)
        if (eatss_home[k]) __builtin_memcpy(eatss_given[k], eatss_home[k], eatss_home_bytes[k]);
    eatss_running = -1;
    __builtin_longjmp(eatss_back, 1);
}
static int eatss_forget(void)
{
    const int reached = eatss_awaited < 0;
    eatss_awaited = -1;
    for (int k = 0; k < EATSS_MOST; k++) {
        __builtin_free(eatss_kept[k]);
        __builtin_free(eatss_unused[k]);
        eatss_kept[k] = eatss_unused[k] = 0;
    }
    return reached;
}
"""
"""What calls a function of which only a region counts: the region's data are set when it is
reached, whatever the function did to them before, and it is left where the region ends."""

_ARRAY = re.compile(
    r"(?P<element>[\w *]*[ *])"
    r"(?:(?P<name>\w+)|\( ?\*[\w ]*?(?P<pointed>\w+) ?\)) ?(?P<of>\[.*\])"
)
"""A parameter that is an array, or a pointer to rows of one."""

_UNUSED_BYTES = 1 << 28
_PRAGMA = re.compile(r"\s*#\s*pragma\s+(scop|endscop)\b")
_LINE_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"([ \d]*)')
"""Of a preprocessor: the number of a line, its file, and flags."""


def size_variables(names: Iterable[str], *, language: str) -> str:
    """Return definitions of the variables that stand for macro sizes where they may vary."""
    declarations = "".join(f"int {size_variable(name)};\n" for name in names)
    return f'extern "C" {{\n{declarations}}}\n' if language == "c++" else declarations


def size_variable(name: str) -> str:
    """Return the variable a macro size is defined as."""
    return f"eatss_size_{name}"


def has_parts(program: Program) -> bool:
    """Tell whether only a part of some function is to be run."""
    return any(_is_part(entry) for entry in program.entries)


def _is_part(entry: Entry) -> bool:
    return not entry.whole_function or any(a.source == "local" for a in entry.arguments)


def included_text(program: Program, directory: Path) -> str:
    """Return text that includes the original."""
    return f'#include "{(directory / program.original.file).absolute()}"\n'


def original_text(
    program: Program,
    included: str,
    *,
    language: Literal["c", "c++"],
    sizes: TextByName,
    variables: str = "",
) -> str:
    """Return the original with ``int eatss_call_N(void **arguments)`` for every entry.

    This calls the function of entry ``N`` with values taken from, and arrays at, the pointers, in
    the order of the entry's arguments; globals are set before and read back afterwards. Of a
    function that does more than its region, the region is run with these arguments; it returns 0
    if the function did not reach it.

    Args:
        program: the program.
        included: what :func:`included_text` returned; or, where the program has parts of
            functions, what the preprocessor and :func:`with_switches` made of it.
        language: of the text.
        sizes: texts for the values of macro sizes.
        variables: definitions that come first.
    """
    head = _HEAD[language] + _COPIES
    if has_parts(program):
        most = max(1, *(len(entry.arguments) for entry in program.entries))
        head += f"#define EATSS_MOST {most}{_SWITCH}#define const\n{included}\n#undef const\n"
    else:
        head += included
    head += '#pragma GCC diagnostic error "-Wint-conversion"\n' if language == "c" else ""
    calls = (_call_text(n, entry, language, sizes) for n, entry in enumerate(program.entries))
    return "".join((variables, head, *calls))


_COPIED = """\
{% macro copied(what, number, one) %}
 EATSS_${ what }(${ number }, ${ one.source_name }, \
{% if one.role == "array" %}
EATSS_IS_DECAYED(${ one.source_name })\
{% elif one.role == "cell" %}
EATSS_IS_POINTER(${ one.source_name }, ${ one.element_type })\
{% else %}
0\
{% endif %}
);{% endmacro %}
"""
"""Sets a variable, or reads it, whether it points to its elements or not."""

_CALL = """\
${ "extern \\"C\\" " if language == "c++" else "" }int eatss_call_${ number }(void **eatss_p)
{
{% for one in entry.arguments if one.structure %}
    static ${ plain(one.structure) } eatss_structure_${ one.position };
    __builtin_memset((void *)&eatss_structure_${ one.position }, 0, \
sizeof eatss_structure_${ one.position });
{% endfor %}
{% if is_part %}
    eatss_given = eatss_p;
{% for k, one in arguments if one.role in ("array", "cell") %}
{% if one.reads or one.writes %}
    eatss_keep(${ k }, sizeof(${ one.element_type })\
{% for extent in one.shape %} * (${ extent_text(extent) }){% endfor %});
{% else %}
    eatss_p[${ k }] = eatss_unused[${ k }] = __builtin_calloc(1, ${ unused_bytes }ul);
{% endif %}
{% endfor %}
{% endif %}
{% for k, one in arguments if one.source == "global" %}${ copied("PUT", k, one) }{% endfor +%}
{% if is_part %}
    eatss_awaited = ${ number };
    if (__builtin_setjmp(eatss_back) == 0) ${ call };
    return eatss_forget();
{% else %}
    ${ call };
{% for k, one in arguments if one.source == "global" and one.writes %}
${ copied("GET", k, one) }{% endfor +%}
    return 1;
{% endif %}
}
"""
"""Calls the function of an entry; what no region uses of a part's arrays gets room."""

_ENTER = """\
{ if (eatss_awaited == ${ number }) { eatss_enter();\
{% for k, one in arguments if one.reads or one.writes %}
${ copied("ENTER", k, one) }${ copied("LEAVE", k, one) if one.writes else "" }{% endfor %}
 } }"""
"""Gives the variables of a region their values if it is awaited."""


def _call_text(number: int, entry: Entry, language: str, sizes: TextByName) -> str:
    """Return the function that calls that of an entry."""
    values: dict[str, IntExpr] = {name: Name(text) for name, text in sizes.items()}
    for k, one in enumerate(entry.arguments):
        if one.role == "parameter":
            values[one.name] = Name(f"(long long)*({one.element_type} *)eatss_p[{k}]")
    return template(_COPIED + _CALL).render(
        number=number,
        entry=entry,
        arguments=[*enumerate(entry.arguments)],
        language=language,
        is_part=_is_part(entry),
        plain=lambda words: re.sub(r"\b(const|volatile|restrict)\b", "", words).strip(),
        extent_text=lambda extent: c_text(substitute(extent, values)),
        unused_bytes=_UNUSED_BYTES,
        call=f"{entry.function}({', '.join(_passed(entry))})",
    )


def with_switches(expanded: str, program: Program, directory: Path, *, system_headers: bool) -> str:
    """Return preprocessed text in which the regions of parts of functions can be run alone.

    What stands for the pragmas takes no line of its own. What ``system_headers`` declare is left
    out where it is not wanted.
    """
    own, enter = str((directory / program.original.file).absolute()), template(_COPIED + _ENTER)
    parts = {entry.region: (k, entry) for k, entry in enumerate(program.entries) if _is_part(entry)}
    lines = []
    users: set[str] = set()
    here, left_out, region = False, False, -1
    for line in expanded.splitlines():
        if marker := _LINE_MARKER.match(line):
            here = re.sub(r"\\(.)", r"\1", marker[2]) == own
            users |= {marker[2]} if "3" not in marker[3].split() else set()
            left_out = not system_headers and marker[2] not in users  # of theirs may be macros
            line = f'# {marker[1]} "{marker[2]}"'  # noqa: PLW2901 - without its flags
        elif here and (pragma := _PRAGMA.match(line)):
            enters = pragma[1] == "scop"
            region += enters
            number, entry = parts.get(region, (0, None))
            line = ""  # noqa: PLW2901
            if entry is not None:
                leaves = f"{{ if (eatss_running == {number}) eatss_leave(); }}"
                arguments = [*enumerate(entry.arguments)]
                entered = enter.render(number=number, arguments=arguments)
                line = entered if enters else leaves  # noqa: PLW2901
        if not left_out:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _passed(entry: Entry) -> Iterator[str]:
    """Yield the arguments of the call; parameters that the region sets by itself are 0."""
    own = ((k, one) for k, one in enumerate(entry.arguments) if one.position is not None)
    for k, argument in sorted(own, key=lambda one: one[1].position or 0):
        if argument.structure:
            yield f"eatss_structure_{argument.position}"
        elif argument.source != "parameter":
            yield "0"
        elif argument.role in ("array", "cell"):
            yield f"EATSS_ANY({k})"
        else:
            yield f"*({argument.element_type} *)eatss_p[{k}]"


def with_numbers(text: str) -> str:
    """Return preprocessed C whose floating literals are numbers that know their bounds.

    A quotient of an integer by one is exact in C, and not where divisions are approximate.
    """
    edits: list[Edit] = []
    for token in tokens(text):
        literal = _FLOATING.fullmatch(token.text) if token.kind == "number" else None
        if literal is not None:
            kind = "float" if literal[1] else "double"
            edits.append((token.start, token.end, f"eatss_{kind}({token.text})"))
    return edited(text, edits)


_FLOATING = re.compile(
    r"(?:(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|0[xX][\da-fA-F.]+[pP][+-]?\d+)([fF]?)"
)


def with_open_arrays(text: str) -> str:
    """Return preprocessed C with pointers in place of arrays among the parameters of functions.

    C++ has no arrays of variable size there, but in functions: what an array was is declared where
    the body begins, on the same line.
    """
    found = [token for token in tokens(text) if token.kind != "directive"]
    edits: list[Edit] = []
    place = 0
    while place < len(found):
        if found[place].text not in ("(", "{"):
            place += 1
            continue
        close = closing(found, place)
        if found[place].text == "(":
            first, last = found[place].end, found[close].start
            parameters = [_open_array(one) for one in _COMMA.split(text[first:last])]
            edits.append((first, last, ",".join(taken for taken, _ in parameters)))
            if [token.text for token in found[close + 1 : close + 2]] == ["{"]:
                begins = found[close + 1].end
                edits.append((begins, begins, "".join(declared for _, declared in parameters)))
        place = close + 1
    return edited(text, edits)


_COMMA = re.compile(r",(?![^(\[]*[)\]])")
"""A comma between parameters, in no brackets of one."""


def _open_array(parameter: str) -> tuple[str, str]:
    """Return what a function takes for a parameter, and what declares it in its body.

    ``double A[n][m]`` and ``double (*A)[m]`` are pointers to rows.
    """
    match = _ARRAY.fullmatch(" ".join(parameter.split()))
    if match is None:
        return parameter, ""
    element, pointed, extents = match["element"].strip(), match["pointed"], match["of"]
    name = pointed or match["name"]
    if not pointed:
        extents = extents[extents.index("]") + 1 :].strip()
    before = parameter[: len(parameter) - len(parameter.lstrip())]
    if not extents:
        return f"{before}{element} *{name}", ""
    declared = f" {element} (*{name}){extents} = ({element} (*){extents})eatss_of_{name};"
    return f"{before}const void *eatss_of_{name}", declared


def gpu_text(program: Program, directory: Path) -> str:
    """Return the generated text with what a host without the CUDA runtime's headers calls."""
    path = (directory / program.file).absolute()
    return f'#include "{path}"\n' + _GPU_DRIVER


_GPU_DRIVER = r"""
#include <cuda_runtime.h>

extern "C" void *eatss_device_put(const void *host, size_t bytes)
{
    void *pointer = nullptr;
    const bool there = cudaMalloc(&pointer, bytes) == cudaSuccess
        && cudaMemcpy(pointer, host, bytes, cudaMemcpyHostToDevice) == cudaSuccess;
    return there ? pointer : nullptr;
}
extern "C" int eatss_device_take(void *host, void *device, size_t bytes)
{
    const int code = (int)cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost);
    return code ? code : (int)cudaFree(device);
}
extern "C" int eatss_device_wait(void) { return (int)cudaDeviceSynchronize(); }
extern "C" const char *eatss_device_error(int code)
{
    return cudaGetErrorString((cudaError_t)code);
}
"""
