"""The whole file: header, preamble, kernels, entries, and a ``main`` that times them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from eatss.base.frozen import their_names
from eatss.base.templates import template
from eatss.cuda.host import launcher_text
from eatss.cuda.kernel_printer import kernel_text
from eatss.cuda.preamble import preamble
from eatss.cuda.text import type_text
from eatss.lower.kernel.nodes import Kernel
from eatss.lower.kernel.uses import instructions_in
from eatss.polyhedral.expression import ElementType
from eatss.program import (
    Apply,
    Argument,
    IntExpr,
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


_HEADER = """\
// ${ program.file }: generated by eatss from ${ program.original.file } for ${ program.gpu }.
// Compile: nvcc -O3 ${ flags }-arch=sm_${ program.compute_capability } ${ program.file }
//   with -DEATSS_MAIN for a program of its own.
"""

_HEADING = """\
// ${ code.statements | join(", ") }: ${ code.block | join(" x ") } threads a block
{% if code.tile_sizes %}
// tiles: \
{% for own, size in code.tile_sizes %}
${ own } = ${ size }${ "" if loop.last else ", " }{% endfor +%}
{% endif %}
{% for note in code.notes %}
// ${ note }
{% endfor %}
"""

_SIZES = """\
// Sizes: -D${ macros[0].macro }=VALUE sets ${ macros[0].name }.
{% for one in macros %}
#ifndef ${ one.macro }
#define ${ one.macro } ${ one.default }
#endif
{% endfor %}
#if \
{% for one in macros %}defined(${ size(one.name) })${ "" if loop.last else " || " }{% endfor +%}
#error "give -D${ macros[0].macro }=VALUE, not -D${ macros[0].name }"
#endif
{% for one in macros %}
#define ${ size(one.name) } ${ one.macro }
{% endfor %}
"""
"""Definitions of sizes: no header stands behind them."""

_MAIN = """\
#ifdef EATSS_MAIN
{% for one in macros %}
#undef ${ size(one.name) }
{% endfor %}
${ support }
{%- if macros %}

{% for one in macros %}
#define ${ size(one.name) } ${ one.macro }
{% endfor %}
{% endif %}
{% for entry in program.entries %}

static void eatss_run_${ entry.launcher }(const eatss_options &eatss_given) {
{% for one in entry.arguments if one.role == "parameter" %}
    const long long ${ size(one.name) } = \
eatss_given.size<${ kind(one) }>("${ one.name }", ${ usual(one.name) });
{% endfor %}
{% for one in entry.arguments %}
{% if one.role == "scalar" %}
    const ${ kind(one) } ${ one.name } = eatss_random_values<${ kind(one) }>(1, ${ loop.index })[0];
{% elif one.role != "parameter" %}
    eatss_array<${ kind(one) }> ${ one.name }("${ one.name }", \
eatss_count({\
{% for extent in one.shape %}${ wide(extent) }${ "" if loop.last else ", " }{% endfor %}}), \
${ loop.index });
{% endif %}
{% endfor %}
{% set stored = entry.arguments | selectattr("role", "in", ("array", "cell")) | list %}
{% set shown = sizes(entry) %}
    std::vector<eatss_data *> eatss_all = {\
{% for one in stored %}&${ one.name }${ "" if loop.last else ", " }{% endfor %}};
    std::vector<const char *> eatss_assumptions = {\
{% for one in entry.assumptions %}\
${ quoted(one.message) }${ "" if loop.last else ", " }{% endfor %}};
    std::printf("${ entry.launcher }{% for name in shown %} ${ name }=%lld{% endfor %}\\n"\
{% for name in shown %}, (long long)(${ size(name) }){% endfor %});
    auto eatss_launch = [&] {
        return ${ entry.launcher }(\
{% for one in entry.arguments %}${ passed(one) }, {% endfor %}cudaStream_t(0));
    };
    eatss_measure("${ entry.launcher }", eatss_launch, eatss_all, eatss_assumptions,
                  eatss_given.repetitions);
{% for one in stored if one.writes %}
    ${ one.name }.print_sums();
{% endfor %}
}
{% endfor %}

static void eatss_print_help(const char *program) {
    std::printf("usage: %s [REPETITIONS]\
{% for one in given %} [${ one.name }=VALUE]{% endfor %}\\n", program);
    std::printf("Times the kernels of ${ program.name } on random data.\\n");
{% for one in given %}
    std::printf("  ${ one.name }: \
${ "has to be given" if one.default is none else one.default }\\n");
{% endfor %}
{% for one in program.macros %}
    std::printf("  ${ one.name }=%lld, set when compiled with -D${ one.macro }=VALUE\\n", \
(long long)(${ size(one.name) }));
{% endfor %}
}

int main(int eatss_argc, char **eatss_argv) {
    eatss_options eatss_given({\
{% for one in given %}"${ one.name }"${ "" if loop.last else ", " }{% endfor %}});
    if (!eatss_given.read(eatss_argc, eatss_argv)) {
        eatss_print_help(eatss_argv[0]);
        return eatss_given.wants_help ? 0 : 2;
    }
{% for entry in program.entries %}
    eatss_run_${ entry.launcher }(eatss_given);
{% endfor %}
    return 0;
}
#endif // EATSS_MAIN
"""


def main_text(program: Program) -> str:
    """Return ``#ifdef EATSS_MAIN … #endif``: a program that times every entry on random data.

    Arguments on its command line are the number of repetitions and, as ``name=value``, the
    parameters of kind ``argument``. The text uses ``program``'s names, parameters and entries
    only. It ends with code 2 for what the user or the card cannot do.
    """
    defaults = {one.name: one.default for one in program.parameters}
    truths = any(_is_truth(one) for entry in program.entries for one in entry.arguments)
    return template(_MAIN).render(
        program=program,
        size=size_text,
        support=SUPPORT + TRUTH_SUPPORT * truths,
        macros=[one for one in program.parameters if one.defined_as is not None],
        given=[one for one in program.parameters if one.kind == "argument"],
        kind=lambda one: "eatss_truth" if _is_truth(one) else type_text(one.element_type),
        usual=lambda name: "nullptr" if defaults.get(name) is None else f'"{defaults[name]}"',
        sizes=lambda entry: (
            *(one.name for one in entry.arguments if one.role == "parameter"),
            *their_names(program.macros),
        ),
        quoted=partial(json.dumps, ensure_ascii=False),
        passed=_passed,
        wide=_wide,
    )


def _is_truth(argument: Argument) -> bool:
    return argument.role != "parameter" and argument.element_type == ElementType.BOOL.value


def _wide(extent: IntExpr) -> str:
    """Return text whose products do not overflow 32 bits."""
    names = names_in(extent) if isinstance(extent, Apply) else ()
    return generated_text(substitute(extent, {one: converted("long long", one) for one in names}))


def _passed(argument: Argument) -> str:
    if argument.role in ("array", "cell"):
        return f"{'(bool *)' * _is_truth(argument)}{argument.name}.device"
    if argument.role == "parameter":
        return f"({type_text(argument.element_type)}){size_text(argument.name)}"
    return f"{'(bool)' * _is_truth(argument)}{argument.name}"


def file_text(program: Program, kernels: Sequence[Kernel], *, line_info: bool) -> Program:
    """Return the program with its text; ``kernels`` are its kernels."""
    macros = program.macros
    parts = [template(_SIZES).render(macros=macros, size=size_text)] if macros else []
    for code, kernel in zip(program.kernels, kernels, strict=True):
        text = kernel_text(kernel, program.original.file, line_info=line_info)
        parts.append(template(_HEADING).render(code=code) + text)
    body = "\n".join(parts)
    main = main_text(program)
    host = f"#ifndef __CUDACC_RTC__\n\n{entry_texts(program)}\n{main}\n#endif // __CUDACC_RTC__\n"
    used = {one for kernel in kernels for one, _ in instructions_in(kernel)}
    flags = "".join(f"{flag} " for flag in program.flags)
    head = template(_HEADER).render(program=program, flags=flags)
    return replace(program, text="\n".join((head, preamble(body + host, used), body, host)))


def entry_texts(program: Program, *, const: bool = True) -> str:
    """Return the host functions that run the entries of a program.

    ``const`` says whether arrays that are only read are declared so, as kernels of eatss are.
    """
    return "\n".join(launcher_text(program, entry, const=const) for entry in program.entries)
