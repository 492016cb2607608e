"""The host's part: arguments of an entry, loops around launches, the function of a region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from itertools import groupby
from textwrap import indent
from types import MappingProxyType
from typing import TypeVar

import islpy as isl

from eatss.base.frozen import Names, their_names
from eatss.base.templates import template
from eatss.cuda.text import argument_text, type_text
from eatss.lower.arrays import (
    TRUE,
    Arrays,
    DeviceArray,
    condition_of,
    device_arrays,
    union_of,
    value_of,
)
from eatss.lower.index_range import multiplies_sizes, widened
from eatss.lower.pieces import NameTable
from eatss.lower.references import BuiltKernel
from eatss.polyhedral.isl_names import (
    coalesced,
    parameter_between,
    parameter_bound,
    without_parameters,
)
from eatss.polyhedral.scop import FunctionParameter, ParameterDeclaration, Scop
from eatss.program import (
    Apply,
    Argument,
    Constant,
    Entry,
    HostIf,
    HostLoop,
    HostStep,
    Interface,
    InterfaceEntry,
    IntExpr,
    Launch,
    Name,
    Operator,
    Parameter,
    Program,
    Temporary,
    at_least,
    every_step,
    multiplied,
    names_in,
    substitute,
)
from eatss.program.expression import SizePairs, Sizes
from eatss.program.linear import strict
from eatss.program.plan import GRAPH_FROM, Place, Role
from eatss.program.tokens import SHARED, converted, generated_text, size_macro, size_text


def names_of(scop: Scop, macros: Iterable[str]) -> NameTable:
    """Return the names that arrays of a region cannot have in generated text.

    ``macros`` are the sizes of all regions that macros name.
    """
    return NameTable((scop.function, *scop.parameters, *macros, SHARED))


def interface_of(scops: Sequence[Scop], macros: SizePairs) -> Interface:
    """Return what callers of the program made of regions pass, before it is made.

    Args:
        scops: the regions over symbolic sizes.
        macros: sizes that macros name, with their values.
    """
    return Interface(
        parameters=parameters_of([(scop, True) for scop in scops], dict(macros)),
        entries=tuple(
            InterfaceEntry(
                function=scop.function,
                arguments=entry_arguments(
                    scop,
                    device_arrays(scop, names_of(scop, dict(macros))),
                    scop.written_arrays,
                ),
            )
            for scop in scops
        ),
    )


def parameters_of(
    regions: Sequence[tuple[Scop, bool]],
    macros: Sizes,
    tiles: Sizes = MappingProxyType({}),
) -> tuple[Parameter, ...]:
    """Return the sizes a program is generic over.

    Args:
        regions: each with whether its code is for any sizes; else all macros are sizes of it.
        macros: sizes that macros name, with their values.
        tiles: the largest tile along each size.
    """
    found: dict[str, Parameter] = {}
    for scop, generic in regions:
        for name in scop.sizes if generic else (*scop.sizes, *macros):
            found.setdefault(
                name,
                Parameter(
                    name=name,
                    kind="macro" if name in macros else "argument",
                    default=macros.get(name),
                    tile=tiles.get(name, 0),
                    defined_as=size_macro(name) if name in macros else None,
                ),
            )
    return tuple(found.values())


def taken_names(scop: Scop) -> Names:
    """Return the names of the C source that generated names must not be."""
    names = {scop.function, *scop.parameters, *their_names(scop.function_parameters)}
    names |= {declaration.source_name for declaration in scop.parameter_declarations}
    return tuple(sorted(names))


def entry_arguments(scop: Scop, arrays: Arrays, written: frozenset[str]) -> tuple[Argument, ...]:
    """Return the arguments of the function that runs a region, in order.

    First the parameters of the original function, then global variables, then what the
    function keeps locally and sets before the region.
    """
    by_source = {
        (array.array.source_name or array.array.name): array
        for array in arrays.values()
        if array.array.origin == "parameter"
    }
    argument = partial(_argument, scop, written)
    declarations = scop.parameter_declarations
    found = []
    for parameter in scop.function_parameters:
        array = by_source.get(parameter.name)
        if array is not None:
            found.append(replace(argument(array), position=parameter.position))
        else:
            found.append(_parameter(scop, parameter))
    found += (
        argument(array)
        for array in arrays.values()
        if array.array.origin != "parameter" and not _is_temporary(scop, array)
    )
    found += (_size(one) for one in declarations if one.origin not in ("parameter", "macro"))
    return tuple(found)


def _parameter(scop: Scop, parameter: FunctionParameter) -> Argument:
    """Return a size, or what the region does not use."""
    for one in scop.parameter_declarations:
        if (one.origin, one.source_name) == ("parameter", parameter.name):
            return replace(_size(one), position=parameter.position)
    is_structure = parameter.element_type is None and not parameter.is_pointer
    return Argument(
        name=NameTable().fresh(parameter.name),
        role="array" if parameter.is_pointer else "scalar",
        element_type="char" if parameter.element_type is None else parameter.element_type.value,
        shape=(Constant(1),) if parameter.is_pointer else (),
        reads=False,
        writes=False,
        source="parameter",
        source_name=parameter.name,
        position=parameter.position,
        structure=parameter.c_type if is_structure else "",
    )


def _size(declaration: ParameterDeclaration) -> Argument:
    return Argument(
        name=declaration.name,
        role="parameter",
        element_type=declaration.element_type.value,
        shape=(),
        reads=True,
        writes=False,
        source=_SOURCES.get(declaration.origin, "local"),
        source_name=declaration.source_name,
        position=None,
    )


_SOURCES: Mapping[str, Place] = {"parameter": "parameter", "global": "global"}


def _argument(scop: Scop, written: frozenset[str], array: DeviceArray) -> Argument:
    noun = array.array
    role: Role = "scalar" if array.by_value else "cell" if noun.n_dims == 0 else "array"
    reads = any(
        access.array == noun.name and not access.is_write
        for statement in (scop.written or scop).statements
        for access in statement.accesses
    )
    by_value = role == "cell" and noun.origin == "parameter"  # pointers are arrays
    return Argument(
        name=array.name,
        role=role,
        element_type=noun.element_type.value,
        shape=array.declared,
        reads=reads,
        writes=noun.name in written,
        source="local" if by_value else _SOURCES.get(noun.origin, "local"),
        source_name=noun.source_name or noun.name,
        position=None,
    )


def temporaries_of(scop: Scop, arrays: Arrays) -> tuple[Temporary, ...]:
    """Return the device memory an entry allocates for arrays local to the region or function."""
    return tuple(
        Temporary(
            name=array.name, element_type=array.array.element_type.value, shape=array.declared
        )
        for array in arrays.values()
        if _is_temporary(scop, array)
    )


def outside_arrays(scop: Scop, arrays: Arrays) -> Names:
    """Return the names of the arrays in device memory whose values others see."""
    return tuple(
        name
        for name, array in arrays.items()
        if not array.by_value and not _is_temporary(scop, array)
    )


def _is_temporary(scop: Scop, array: DeviceArray) -> bool:
    """Tell whether nothing outside the region sees an array."""
    noun = array.array
    local = noun.origin == "local" and scop.whole_function
    return (noun.is_local or local) and not array.by_value


def host_steps(
    kernels: Sequence[BuiltKernel], known: isl.Set, depth: int = 0
) -> tuple[HostStep, ...]:
    """Return the loops and launches that run kernels in their order, inside ``depth`` host loops.

    Args:
        kernels: the kernels; those that share host loops stand next to each other.
        known: what is known of the sizes.
        depth: how many of their host loops are around.
    """
    steps: list[HostStep] = []

    def key(kernel: BuiltKernel) -> tuple[int, tuple[int, int] | int]:
        host = kernel.piece.host
        own = len(host) > depth
        return own, host[depth].member.key if own else id(kernel)

    for (loops, _), together in groupby(kernels, key):
        own = list(together)
        _append(steps, _loop(own, depth, known) if loops else _launch(own[0], known))
    return tuple(steps)


def _append(steps: list[HostStep], step: HostStep) -> None:
    """Append a step; steps under one condition share it."""
    last = steps[-1] if steps else None
    if isinstance(step, HostIf) and isinstance(last, HostIf) and last.condition == step.condition:
        steps[-1] = HostIf(condition=last.condition, body=last.body + step.body)
    else:
        steps.append(step)


def _loop(kernels: Sequence[BuiltKernel], depth: int, known: isl.Set) -> HostStep:
    name = kernels[0].piece.host[depth].name
    inner = [their_names(one.piece.host[depth + 1 :]) for one in kernels]
    launches = [one.launch for one in kernels]
    values = coalesced(union_of(map(without_parameters, launches, inner)))
    here = known.intersect(without_parameters(values, [name]))
    lower = parameter_bound(values, name, upper=False).coalesce()
    upper = parameter_bound(values, name, upper=True).coalesce()
    # between its bounds the loop may meet values at which nothing is to be run
    inside = here.intersect(parameter_between(name, lower, upper))
    body = host_steps(kernels, coalesced(inside), depth + 1)
    loop = HostLoop(
        counter=name, lower=value_of(lower, here), upper=value_of(upper, here), step=1, body=body
    )
    condition = condition_of(coalesced(here), known)
    return loop if condition == TRUE else HostIf(condition=condition, body=(loop,))


def _launch(built: BuiltKernel, known: isl.Set) -> HostStep:
    launch = Launch(kernel=built.kernel.name, grid=built.grid)
    condition = condition_of(built.launch, known)
    return launch if condition == TRUE else HostIf(condition=condition, body=(launch,))


def bounds_of_loops(steps: Sequence[HostStep]) -> Iterator[IntExpr]:
    """Yield the bounds of the host's loops."""
    for step, _ in every_step(steps):
        if isinstance(step, HostLoop):
            yield from (step.lower, step.upper)


_LAUNCHER = """\
{% if calls %}
static eatss_calls ${ calls };

{% endif %}
extern "C" int ${ entry.launcher }(${ parameters })
{
{% for one, own in given %}
{% if one.element_type == "unsigned long" %}
    if (${ own } > 0x7fffffffffffffffUL) return (int)cudaErrorInvalidValue;
{% endif %}
    const long ${ size(one.name) } = (long)${ own };
{% endfor %}
{% for one in entry.assumptions %}
    if (!(${ wide(one.condition) })) return -${ loop.index };  // ${ one.message }
{% endfor %}
{% for kernel in program.kernels if kernel.dynamic_shared %}
    if (cudaError_t eatss_error = cudaFuncSetAttribute(${ kernel.name },
            cudaFuncAttributeMaxDynamicSharedMemorySize, ${ kernel.shared_bytes })) \
return (int)eatss_error;
{% endfor %}
{% if calls %}
    return ${ calls }.run(${ stream }, {
{% for one in entry.temporaries %}
        {sizeof(${ type(one.element_type) }), (size_t)(${ wide(elements_of(one)) }), \
${ "true" if one.zeroed else "false" }},  // ${ one.name }
{% endfor %}
    }, [&](eatss_stream &${ stream }, void *const *\
${ "eatss_memory" if entry.temporaries else "" }) {
{% for one in entry.temporaries %}
        ${ type(one.element_type) } *const ${ one.name } = \
(${ type(one.element_type) } *)eatss_memory[${ loop.index0 }];
{% endfor %}
${ steps | indent(8, first=True) }
    }${ used });
}

extern "C" int ${ entry.launcher }_free(void)
{
    return ${ calls }.free();
}
{% else %}
{% if steps %}
${ steps | indent(4, first=True) }
{% endif %}
    return (int)cudaGetLastError();
}
{% endif %}
"""


def launcher_text(program: Program, entry: Entry, *, const: bool) -> str:
    """Return the host function that runs a region on device pointers.

    ``const`` says whether arrays that are only read are declared so. Sizes of another type than
    ``int`` are passed under other names. A launcher that works in memory, or whose launches are
    many, keeps memory and graphs from call to call, told by the arguments that it uses.
    """
    names = NameTable(their_names(entry.arguments))
    every = [step for step, _ in every_step(entry.body)]
    loops = [step for step in every if isinstance(step, HostLoop)]
    names.reserve(*their_names(entry.temporaries), *(loop.counter for loop in loops))
    sizes = [one for one in entry.arguments if one.role == "parameter"]
    given = {a.name: names.fresh(f"{a.name}_given") for a in sizes if a.element_type != "int"}
    stream = names.fresh("stream")
    declared = [argument_text(argument, given, const=const) for argument in entry.arguments]
    used = (one.name for one in entry.arguments if one.reads or one.writes)
    launches = sum(isinstance(step, Launch) for step in every)
    keeps = loops or launches >= GRAPH_FROM or entry.temporaries
    return template(_LAUNCHER).render(
        program=program,
        entry=entry,
        size=size_text,
        type=type_text,
        calls=f"eatss_calls_of_{entry.launcher}" if keeps else "",
        parameters=", ".join((*declared, f"cudaStream_t {stream}")),
        given=[(one, given[one.name]) for one in sizes if one.name in given],
        stream=stream,
        wide=lambda one: generated_text(_widened(one)),
        elements_of=elements_of,
        steps=_Steps(program, stream).text(entry.body),
        used="".join(f", {given.get(name, name)}" for name in used),
    )


def elements_of(one: Temporary) -> IntExpr:
    """Return the number of elements; none where nothing of a dimension is needed."""
    none: IntExpr = Constant(1)
    return reduce(multiplied, (at_least(extent, 0) for extent in one.shape), none)


class _Steps:
    """Prints what the host does."""

    def __init__(self, program: Program, stream: str) -> None:
        self._program, self._stream = program, stream
        self._wide = program.index_bits != 32

    def text(self, steps: Sequence[HostStep], counters: frozenset[str] = frozenset()) -> str:
        return "\n".join(self._step(step, counters) for step in steps)

    def _step(self, step: HostStep, counters: frozenset[str]) -> str:
        if isinstance(step, Launch):
            return self._launch(step)
        if isinstance(step, HostLoop):
            head, counters = self._loop(step), counters | {step.counter}
        else:
            head = self._test(step, counters)
        return f"{head} {{\n{indent(self.text(step.body, counters), '    ')}\n}}"

    def _own(self, expression: IntExpr) -> IntExpr:
        """Return an expression whose products of sizes are computed in 64 bits if indices are."""
        wide = self._wide and multiplies_sizes(expression)
        return _in_long(expression) if wide else expression

    def _test(self, step: HostIf, counters: frozenset[str]) -> str:
        condition = strict(self._own(step.condition))
        if not self._wide:  # no condition has told yet that the sizes are small
            condition = widened(condition, set(names_in(condition)) - counters)
        return f"if ({generated_text(condition)})"

    def _loop(self, step: HostLoop) -> str:
        counter, c_type = step.counter, "long" if self._wide else "int"
        increment = f"++{counter}" if step.step == 1 else f"{counter} += {step.step}"
        goes_on = generated_text(strict(Name(counter) <= self._own(step.upper)))
        lower = generated_text(self._own(step.lower))
        return f"for ({c_type} {counter} = {lower}; {goes_on}; {increment})"

    def _launch(self, launch: Launch) -> str:
        kernel = self._program.kernel(launch.kernel)
        extents = _used(launch.grid, Constant(1))
        grid = ", ".join(generated_text(self._own(extent)) for extent in extents)
        block = ", ".join(map(str, _used(kernel.block, 1)))
        shared = kernel.shared_bytes if kernel.dynamic_shared else 0
        passed = ", ".join((self._stream, *map(size_text, kernel.arguments)))
        text = f"{kernel.name}, dim3({grid}), dim3({block}), {shared}, {passed}"
        return f"EATSS_LAUNCH({text});"


_Extent = TypeVar("_Extent")


def _used(extents: Sequence[_Extent], one: _Extent) -> Sequence[_Extent]:
    """Return extents along the first axes, up to the last of more than one."""
    return extents[: max((at for at, own in enumerate(extents, 1) if own != one), default=1)]


def _widened(expression: IntExpr) -> IntExpr:
    """Return the expression computed in 64 bits, or with products of sizes that may pass them.

    A double tells exactly on which side of 2^31 a product lies.
    """
    match expression:
        case Apply(Operator.LE, (Apply(Operator.MUL), _)):  # a product of sizes is bounded
            return _in_double(expression)
    return _in_long(expression)


def _in_long(expression: IntExpr) -> IntExpr:
    names = set(names_in(expression))
    return substitute(expression, {name: converted("long", name) for name in names})


def _in_double(expression: IntExpr) -> IntExpr:
    """Return sums and products computed in doubles; what only integers have, as a remainder, is."""
    match expression:
        case Apply(Operator.ADD | Operator.SUB | Operator.MUL | Operator.LE, operands):
            return replace(expression, operands=tuple(map(_in_double, operands)))
        case Apply():
            return Name(f"(double)({generated_text(_in_long(expression))})")
        case Name(name):
            return converted("double", name)
    return expression
