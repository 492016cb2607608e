"""The whole file: header, preamble, kernels, entries, and a ``main`` that times them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from string import Template

from eatss.base.frozen import their_names
from eatss.cuda.host import launcher_text
from eatss.cuda.kernel_printer import kernel_text
from eatss.cuda.preamble import preamble
from eatss.cuda.text import Lines, type_text
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.kernel.uses import instructions_in
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Apply,
    Argument,
    Entry,
    IntExpr,
    KernelCode,
    Parameter,
    Program,
    names_in,
    substitute,
)
from eatss.program.tokens import converted, generated_text, size_text

SUPPORT = r"""// A program by itself: nvcc -DEATSS_MAIN FILE.cu -o PROGRAM && ./PROGRAM --help
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

static inline void eatss_check_cuda(cudaError_t error, const char *what)
{
    if (error != cudaSuccess) {
        std::fprintf(stderr, "error: %s: %s\n", what, cudaGetErrorString(error));
        std::exit(2);
    }
}

// REPETITIONS and name=value from the command line.
struct eatss_options {
    std::vector<std::string> names;
    std::map<std::string, long long> values;
    int repetitions = 5;
    bool wants_help = false;

    explicit eatss_options(std::initializer_list<const char *> known)
        : names(known.begin(), known.end())
    {
    }

    bool read(int count, char **words)
    {
        for (int at = 1; at < count; at++) {
            const std::string word = words[at];
            const size_t equals = word.find('=');
            wants_help = wants_help || word == "--help" || word == "-h";
            const std::string name = equals == std::string::npos ? "" : word.substr(0, equals);
            const std::string text = equals == std::string::npos ? word : word.substr(equals + 1);
            char *end = nullptr;
            const long long value = std::strtoll(text.c_str(), &end, 10);
            const bool is_number = !text.empty() && *end == '\0';
            const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
            if (wants_help)
                return false;
            if (!is_number || (!name.empty() && !is_known) || (name.empty() && value < 1)) {
                std::fprintf(stderr, "error: cannot read '%s'\n", word.c_str());
                return false;
            }
            if (name.empty())
                repetitions = (int)std::min(value, 1000000LL);
            else
                values[name] = value;
        }
        return true;
    }

    // The value of a parameter, or what it usually is; it has to fit its type in the launcher.
    template <typename Integer>
    long long size(const char *name, const char *usual) const
    {
        if (values.count(name) == 0 && usual == nullptr) {
            std::fprintf(stderr, "error: %s has no value; give %s=VALUE\n", name, name);
            std::exit(2);
        }
        const long long value = values.count(name) ? values.at(name) : std::atoll(usual);
        if ((long long)(Integer)value != value) {
            std::fprintf(stderr, "error: %s=%lld does not fit its type\n", name, value);
            std::exit(2);
        }
        return value;
    }
};

static inline size_t eatss_count(std::initializer_list<long long> extents)
{
    size_t count = 1;
    for (long long extent : extents)
        count *= extent > 0 ? (size_t)extent : 0;
    return count;
}

// Numbers in [0, 1), or from 0 to 9 for integers; the same for the same seed.
template <typename Element>
static std::vector<Element> eatss_random_values(size_t count, unsigned long long seed)
{
    std::vector<Element> values(count);
    unsigned long long state = seed * 0x9e3779b97f4a7c15ULL;
    for (Element &value : values) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        const bool is_integer = (Element)0.5 == (Element)0;
        value = is_integer ? (Element)((state >> 33) % 10) : (Element)((state >> 40) * 0x1p-24);
    }
    return values;
}

struct eatss_data {
    virtual ~eatss_data() {}
    virtual void restore() = 0;
    virtual size_t bytes() const = 0;
};

// An array on host and device.
template <typename Element>
struct eatss_array : eatss_data {
    const char *name;
    std::vector<Element> initial;
    Element *device = nullptr;

    eatss_array(const char *its_name, size_t count, unsigned long long seed)
        : name(its_name), initial(eatss_random_values<Element>(count, seed))
    {
        eatss_check_cuda(cudaMalloc(&device, bytes()), name);
    }
    ~eatss_array() override { cudaFree(device); }
    eatss_array(const eatss_array &) = delete;
    eatss_array &operator=(const eatss_array &) = delete;

    size_t bytes() const override { return initial.size() * sizeof(Element); }

    void restore() override
    {
        eatss_check_cuda(cudaMemcpy(device, initial.data(), bytes(), cudaMemcpyHostToDevice), name);
    }

    std::vector<Element> result() const
    {
        std::vector<Element> values(initial.size());
        eatss_check_cuda(cudaMemcpy(values.data(), device, bytes(), cudaMemcpyDeviceToHost), name);
        return values;
    }

    void print_sums() const
    {
        double sum = 0, magnitudes = 0;
        for (Element value : result()) {
            sum += (double)value;
            magnitudes += std::fabs((double)value);
        }
        std::printf("  %s: sum %.10g, sum of magnitudes %.10g\n", name, sum, magnitudes);
    }

};

// Runs once to warm up, then `repetitions` times on the same data, which is copied back before
// each run, outside the time that is measured.
template <typename Launch>
static void eatss_measure(const char *entry, Launch launch, const std::vector<eatss_data *> &all,
                          const std::vector<const char *> &assumptions, int repetitions)
{
    cudaEvent_t start, stop;
    eatss_check_cuda(cudaEventCreate(&start), "cudaEventCreate");
    eatss_check_cuda(cudaEventCreate(&stop), "cudaEventCreate");
    std::vector<float> times_ms;
    for (int run = -2; run < repetitions; run++) { // a graph is made in the second
        for (eatss_data *data : all)
            data->restore();
        eatss_check_cuda(cudaEventRecord(start), entry);
        const int code = launch();
        if (code < 0) {
            const size_t which = (size_t)(-code - 1);
            const char *why = which < assumptions.size() ? assumptions[which] : "an assumption";
            std::fprintf(stderr, "error: %s does not run: %s\n", entry, why);
            std::exit(2);
        }
        eatss_check_cuda((cudaError_t)code, entry);
        eatss_check_cuda(cudaEventRecord(stop), entry);
        eatss_check_cuda(cudaEventSynchronize(stop), entry);
        float time_ms = 0;
        eatss_check_cuda(cudaEventElapsedTime(&time_ms, start, stop), entry);
        if (run >= 0)
            times_ms.push_back(time_ms);
    }
    eatss_check_cuda(cudaEventDestroy(start), "cudaEventDestroy");
    eatss_check_cuda(cudaEventDestroy(stop), "cudaEventDestroy");
    std::sort(times_ms.begin(), times_ms.end());
    size_t bytes = 0;
    for (const eatss_data *data : all)
        bytes += data->bytes();
    const size_t middle = times_ms.size() / 2;
    const float median_ms = (times_ms[(times_ms.size() - 1) / 2] + times_ms[middle]) / 2;
    std::printf("  time: min %.4f ms, median %.4f ms of %d runs; data: %zu bytes\n", times_ms[0],
                median_ms, repetitions, bytes);
}
"""

TRUTH_SUPPORT = r"""
// A bool in a vector, where bools have no addresses; of numbers, whether they are odd.
struct eatss_truth {
    bool value;

    eatss_truth() = default;
    template <typename Number>
    explicit eatss_truth(Number number) : value((long long)number & 1)
    {
    }
    template <typename Number>
    explicit operator Number() const
    {
        return (Number)value;
    }
    bool operator==(eatss_truth other) const { return value == other.value; }
};
"""


def main_text(program: Program) -> str:
    """Return ``#ifdef EATSS_MAIN … #endif``: a program that times every entry on random data.

    Arguments on its command line are the number of repetitions and, as ``name=value``, the
    parameters of kind ``argument``. The text uses ``program``'s names, parameters and entries
    only. It ends with code 2 for what the user or the card cannot do.
    """
    lines = Lines()
    macros = [one for one in program.parameters if one.defined_as is not None]
    lines.add("#ifdef EATSS_MAIN", *(f"#undef {size_text(one.name)}" for one in macros))
    lines.add(*SUPPORT.splitlines())
    if any(_is_truth(one) for entry in program.entries for one in entry.arguments):
        lines.add(*TRUTH_SUPPORT.splitlines())
    if macros:
        lines.add("", *map(size_definition, macros))
    for entry in program.entries:
        lines.add("", *_runner(entry, program).splitlines())
    lines.add("", *_main(program).splitlines(), "#endif // EATSS_MAIN")
    return lines.text()


def size_definition(parameter: Parameter) -> str:
    """Return the line that names a size that a macro sets."""
    return f"#define {size_text(parameter.name)} {parameter.macro}"


# -- one entry ---------------------------------------------------------------------------

_RUNNER = """\
static void eatss_run_$launcher(const eatss_options &eatss_given) {
$declared
    std::vector<eatss_data *> eatss_all = {$stored};
    std::vector<const char *> eatss_assumptions = {$messages};
    std::printf("$launcher$formats\\n"$values);
    auto eatss_launch = [&] {
        return $launcher($passed);
    };
    eatss_measure("$launcher", eatss_launch, eatss_all, eatss_assumptions,
                  eatss_given.repetitions);
$sums
}
"""


def _runner(entry: Entry, program: Program) -> str:
    defaults = {parameter.name: parameter.default for parameter in program.parameters}
    stored = [a for a in entry.arguments if a.role in ("array", "cell")]
    sizes = [a for a in entry.arguments if a.role == "parameter"]
    declared = [
        *(_parameter(argument, defaults.get(argument.name)) for argument in sizes),
        *(
            _data(argument, seed)
            for seed, argument in enumerate(entry.arguments, start=1)
            if argument.role != "parameter"
        ),
    ]
    shown = [*their_names(sizes), *their_names(program.macros)]
    words = {
        "launcher": entry.launcher,
        "declared": _below(declared),
        "stored": ", ".join(f"&{argument.name}" for argument in stored),
        "messages": ", ".join(
            json.dumps(assumption.message, ensure_ascii=False) for assumption in entry.assumptions
        ),
        "formats": "".join(f" {name}=%lld" for name in shown),
        "values": "".join(f", (long long)({size_text(name)})" for name in shown),
        "passed": ", ".join((*map(_passed, entry.arguments), "cudaStream_t(0)")),
        "sums": _below(f"{one.name}.print_sums();" for one in stored if one.writes),
    }
    lines = Template(_RUNNER).substitute(words).split("\n")
    return "\n".join(line for line in lines if line)


def _below(lines: Iterable[str]) -> str:
    return "\n".join(f"    {line}" for line in lines)


def _parameter(argument: Argument, default: int | None) -> str:
    usual = "nullptr" if default is None else f'"{default}"'
    name, kind = argument.name, type_text(argument.element_type)
    value = f'eatss_given.size<{kind}>("{name}", {usual})'
    return f"const long long {size_text(name)} = {value};"


def _data(argument: Argument, seed: int) -> str:
    kind, name = type_text(argument.element_type), argument.name
    kind = "eatss_truth" if _is_truth(argument) else kind
    if argument.role == "scalar":
        return f"const {kind} {name} = eatss_random_values<{kind}>(1, {seed})[0];"
    extents = ", ".join(_wide(extent) for extent in argument.shape)
    count = f"eatss_count({{{extents}}})"
    return f'eatss_array<{kind}> {name}("{name}", {count}, {seed});'


def _is_truth(argument: Argument) -> bool:
    return argument.role != "parameter" and argument.element_type == ElementType.BOOL.value


def _wide(extent: IntExpr) -> str:
    """Return text whose products do not overflow 32 bits."""
    names = names_in(extent) if isinstance(extent, Apply) else ()
    return generated_text(substitute(extent, {one: converted("long long", one) for one in names}))


def _passed(argument: Argument) -> str:
    if argument.role in ("array", "cell"):
        return f"{_as_bool(argument, ' *')}{argument.name}.device"
    if argument.role == "parameter":
        return f"({type_text(argument.element_type)}){size_text(argument.name)}"
    return f"{_as_bool(argument)}{argument.name}"


def _as_bool(argument: Argument, pointer: str = "") -> str:
    return f"(bool{pointer})" if _is_truth(argument) else ""


# -- the program -------------------------------------------------------------------------

_MAIN = """\
static void eatss_print_help(const char *program) {
    std::printf("usage: %s [REPETITIONS]$usage\\n", program);
    std::printf("Times the kernels of $program on random data.\\n");$told
}

int main(int eatss_argc, char **eatss_argv) {
    eatss_options eatss_given({$names});
    if (!eatss_given.read(eatss_argc, eatss_argv)) {
        eatss_print_help(eatss_argv[0]);
        return eatss_given.wants_help ? 0 : 2;
    }
$runs
    return 0;
}
"""


def _main(program: Program) -> str:
    given = [p for p in program.parameters if p.kind == "argument"]
    told = [
        f'std::printf("  {p.name}: {"has to be given" if p.default is None else p.default}\\n");'
        for p in given
    ]
    for one in program.macros:
        text = f"  {one.name}=%lld, set when compiled with -D{one.macro}=VALUE"
        told.append(f'std::printf("{text}\\n", (long long)({size_text(one.name)}));')
    runs = (f"eatss_run_{one.launcher}(eatss_given);" for one in program.entries)
    return Template(_MAIN).substitute(
        usage="".join(f" [{p.name}=VALUE]" for p in given),
        program=program.name,
        told="".join(f"\n    {line}" for line in told),
        names=", ".join(f'"{parameter.name}"' for parameter in given),
        runs=_below(runs),
    )


def file_text(program: Program, kernels: Sequence[Kernel], *, line_info: bool) -> Program:
    """Return the program with its text; ``kernels`` are its kernels."""
    parts = [_macros(program)]
    for code, kernel in zip(program.kernels, kernels, strict=True):
        text = kernel_text(kernel, program.original.file, line_info=line_info)
        parts.append(_heading(code) + text)
    body = "\n".join(part for part in parts if part)
    main = main_text(program)
    host = f"#ifndef __CUDACC_RTC__\n\n{entry_texts(program)}\n{main}\n#endif // __CUDACC_RTC__\n"
    used = {one for kernel in kernels for one, _ in instructions_in(kernel)}
    head = _header(program), preamble(body + host, used)
    return replace(program, text="\n".join((*head, body, host)))


def entry_texts(program: Program, *, const: bool = True) -> str:
    """Return the host functions that run the entries of a program.

    ``const`` says whether arrays that are only read are declared so, as kernels of eatss are.
    """
    return "\n".join(launcher_text(program, entry, const=const) for entry in program.entries)


def _header(program: Program) -> str:
    lines = [
        f"{program.file}: generated by eatss from {program.original.file} for {program.gpu}.",
        f"Compile: nvcc -O3 -arch=sm_{program.compute_capability} {program.file}",
        "  with -DEATSS_MAIN for a program of its own.",
    ]
    if program.flags:
        lines[1] = lines[1].replace("nvcc -O3", f"nvcc -O3 {' '.join(program.flags)}")
    return "".join(f"// {line}\n" for line in lines)


def _heading(kernel: KernelCode) -> str:
    """Return the comment above a kernel: its statements, sizes and where references live."""
    sizes = ", ".join(f"{loop} = {size}" for loop, size in kernel.tile_sizes)
    block = " x ".join(str(size) for size in kernel.block)
    lines = [f"{', '.join(kernel.statements)}: {block} threads a block"]
    if sizes:
        lines.append(f"tiles: {sizes}")
    lines.extend(kernel.notes)
    return "".join(f"// {line}\n" for line in lines)


def _macros(program: Program) -> str:
    """Return the definitions of sizes: no header stands behind them."""
    macros = program.macros
    if not macros:
        return ""
    lines = [f"// Sizes: -D{macros[0].macro}=VALUE sets {macros[0].name}."]
    for one in macros:
        lines += [f"#ifndef {one.macro}", f"#define {one.macro} {one.default}", "#endif"]
    given = " || ".join(f"defined({size_text(one.name)})" for one in macros)
    lines += [f"#if {given}", f'#error "give -D{macros[0].macro}=VALUE, not -D{macros[0].name}"']
    lines += ["#endif", *map(size_definition, macros)]
    return "".join(line + "\n" for line in lines)
