"""``Kernel`` → the text of a CUDA function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, replace
from typing import Any, TypeAlias

from eatss.base.targets import CUDA
from eatss.base.templates import template
from eatss.cuda.text import Lines, constant_text, type_text
from eatss.cuda.value_text import ValuePrinter
from eatss.lower.instructions import combined
from eatss.lower.kernel.copies import BY_THREADS, function
from eatss.lower.kernel.nodes import (
    Agreed,
    Aligned,
    AllFinite,
    Argument,
    Barrier,
    Buffer,
    Commit,
    Compute,
    Copy,
    Declare,
    Element,
    Fixup,
    Flag,
    For,
    If,
    Init,
    Intrinsic,
    Kernel,
    Let,
    Load,
    LookBack,
    NextTile,
    Node,
    PartialSum,
    Reciprocal,
    Scope,
    Source,
    Wait,
)
from eatss.lower.kernel.uses import affine_values
from eatss.polyhedral.expression import Expression
from eatss.program import (
    Apply,
    Constant,
    IntExpr,
    Name,
    Operator,
    equals,
    names_in,
    substitute,
)
from eatss.program.tokens import SHARED, generated_text, size_text


def kernel_text(kernel: Kernel, file: str, *, line_info: bool) -> str:
    """Return a kernel as CUDA, the structure of its shared memory in front.

    Args:
        kernel: what it does.
        file: the source, for comments.
        line_info: name the lines of the source to compilers (``#line``) instead of to readers.
    """
    return _Printer(kernel, file, line_info=line_info).text()


_KERNEL = """\
{% if kernel.shared %}
struct ${ kernel.name }_shared {
{% if kernel.overlaid_tiles %}
    union {
{% for group in kernel.overlaid_tiles %}
        struct {
{% set number = loop.index %}
{% for one in group %}
            ${ declared("EATSS_OVERLAID(%s, %d)" % (type(one.element_type), number), one) }
{% endfor %}
        };
{% endfor %}
    };
{% endif %}
{% for one in kernel.separate_tiles %}
    ${ declared("EATSS_TRACKED(%s)" % type(one.element_type), one) }
{% endfor %}
};

{% endif %}
extern "C" __global__ void __launch_bounds__(${ kernel.threads }\
${ "" if kernel.resident == 1 else ", %d" % kernel.resident })
${ kernel.name }(${ parameters })
{
{% if kernel.shared %}
    EATSS_${ "DYNAMIC_" if kernel.dynamic_shared else "" }SHARED(\
${ kernel.name }_shared, ${ shared });
{% endif %}
${ body }}
"""

_LINES: Mapping[type[Node], str] = {
    Let: "const {type} {name} = {value};",
    Barrier: "__syncthreads();",
    Agreed: "const bool {name} = __syncthreads_and({flag});",
    Commit: "eatss_commit_copies();",
    Wait: "eatss_wait_for_copies<{pending}>();",
    Init: "{target} = {value};",
    Load: "{target} = {part};",
    NextTile: "unsigned int {run};\nconst int {name} = eatss_next_tile(&{taken}, {tiles}, {run});",
}
"""Nodes that are printed as they are, by the names of their fields."""

_ALL_FINITE = """\
bool {name} = {unless};
if (!{name}) {{
    {name} = true;
{tests}    {name} = __syncthreads_and({name});
}}
"""
_TEST = "    {name} &= eatss_is_finite({element});\n"

# unrolled, it made NVRTC 13.0 keep all registers of a trmm in memory, and wrong
_TESTS = f"""\
    #pragma unroll 1
    for (int {{counter}} = {{thread}}; {{counter}} < {{count}}; {{counter}} += {{threads}}) {{{{
    {_TEST}    }}}}
"""
_PUT_TOGETHER = """\
bool {name} = true;
if ({number} > 1) {{
    {name} = __syncthreads_and({thread} != 0 || eatss_comes_last(&{arrived}, {number}));
    if (!{name}) {{
{left}        __syncthreads();
        if ({thread} == 0) eatss_parts_are_there(&{arrived});
    }} else {{
        if ({thread} == 0) eatss_wait_for_parts(&{arrived}, {number});
        __syncthreads();
{added}    }}
}}
"""
_ADDED = """\
        if ({own} > 1) {{
{kept}        }}
        for (int {part} = 0; {part} < {number}; ++{part}) {{
            if ({part} != {own} || {own} > 1) {{
{more}            }}
        }}
"""


_Words: TypeAlias = dict[str, Any]
"""What fields of nodes are in a text."""


class _Printer:
    def __init__(self, kernel: Kernel, file: str, *, line_info: bool) -> None:
        self._kernel, self._file = kernel, file
        self._index = "int" if kernel.index_bits == 32 else "long"
        self._lines = Lines()
        place = '#line {line} "{file}"' if line_info else "// {file}:{line}: {text}"
        self._templates = {**_LINES, Source: place}
        self._own_texts: Mapping[type[Node], Callable[[Any, _Words], str]] = {
            Aligned: self._aligned,
            AllFinite: self._all_finite,
            Compute: self._compute,
            Copy: self._copy,
            Flag: self._flag,
            Intrinsic: self._perform,
            Fixup: self._put_together,
            Reciprocal: self._reciprocal,
            LookBack: self._looked_back,
        }

    def text(self) -> str:
        """Return all of it."""
        kernel = self._kernel
        with self._lines.indented():
            self._all(kernel.body)
        return template(_KERNEL).render(
            kernel=kernel,
            declared=_declared,
            type=type_text,
            parameters=", ".join(map(self._argument, kernel.arguments)),
            shared=SHARED,
            body=self._lines.text(),
        )

    def _argument(self, argument: Argument) -> str:
        buffer = argument.buffer
        if buffer is None:
            return f"{self._index} {size_text(argument.name)}"
        c_type = type_text(buffer.element_type)
        if buffer.space == "argument":
            return f"{c_type} {argument.name}"
        alone = "" if argument.passed_on else "__restrict__ "
        return f"{'const ' * argument.read_only}{c_type} *{alone}{argument.name}"

    # Nodes -------------------------------------------------------------------------------

    def _all(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if isinstance(node, For):
                self._for(node)
            elif isinstance(node, If):
                self._if(node)
            elif isinstance(node, Scope):
                with self._lines.block():
                    self._all(node.body)
            else:
                self._lines.add(*self._text(node).removesuffix("\n").split("\n"))

    def _for(self, loop: For) -> None:
        if loop.unroll is not None:
            steps = "" if loop.unroll == "whole" else f" {loop.unroll}"
            self._lines.add(f"#pragma unroll{steps}")
        counter, words = loop.counter, self._words(loop)
        increment = f"++{counter}" if loop.step == Constant(1) else f"{counter} += {words['step']}"
        start = words["lower"]
        if loop.cycle is not None:
            name, last = loop.cycle.name, loop.cycle.count - 1
            start += f", {name} = 0"
            increment += f", {name} = {name} == {last} ? 0 : {name} + 1"
        head = f"for ({words['type']} {counter} = {start}; {words['condition']}; {increment})"
        with self._lines.block(head):
            self._all(loop.body)

    def _if(self, node: If) -> None:
        with self._lines.block(f"if ({self._conditions(node.conditions)})"):
            self._all(node.body)
        if node.orelse:
            self._lines.goes_on(" else {")
            with self._lines.indented():
                self._all(node.orelse)
            self._lines.add("}")

    def _conditions(self, conditions: Sequence[IntExpr]) -> str:
        texts = map(self._expression, conditions)
        if len(conditions) == 1:
            return next(texts)
        return " && ".join(
            f"({text})" if isinstance(one, Apply) and one.operator is Operator.OR else text
            for one, text in zip(conditions, texts, strict=True)
        )

    def _text(self, node: Node) -> str:
        """Return what a node is that stands by itself."""
        words = self._words(node)
        if isinstance(node, Declare):
            return _declared(type_text(node.buffer.element_type), node.buffer)
        if isinstance(node, Source):
            words["file"] = node.file or self._file
        elif isinstance(node, Init):
            words["value"] = constant_text(node.value, node.target.buffer.element_type)
        elif isinstance(node, Load):
            words["part"] = self._values(node, node.part).emit(node.part).text
        own = self._own_texts.get(type(node))
        return self._templates[type(node)].format(**words) if own is None else own(node, words)

    def _words(self, node: Node) -> _Words:
        """Return the fields of a node, elements and integer expressions as they are printed."""
        found: _Words = {"type": self._index}
        for one in fields(node):
            value = getattr(node, one.name)
            if isinstance(value, Element):
                value = self._element(value)
            elif isinstance(value, IntExpr):
                value = self._expression(value)
            found[one.name] = value
        return found | ({"type": "int"} if found.get("narrow") else {})

    def _all_finite(self, node: AllFinite, words: _Words) -> str:
        tests = []
        for share in node.shares:
            words |= {"element": self._element(share.element), "count": share.count}
            tests.append((_TEST if share.count == 1 else _TESTS).format(**words))
        return _ALL_FINITE.format(tests="".join(tests), **words)

    def _put_together(self, node: Fixup, words: _Words) -> str:
        """Print the sum of all parts, in the order of the blocks.

        A part may change places with the one before it. A later one goes to memory and back, so
        that registers hold one set of sums.
        """
        words |= {"left": "", "added": ""}
        for one in node.sums:
            mine, left, found = map(self._element, (one.sum, one.left, one.found))
            leave = f"eatss_leave_part(&{left}, {mine});"
            zero = constant_text(0, one.sum.buffer.element_type)
            words["left"] += _over_places(one, 2, leave)
            words["added"] += _ADDED.format(
                kept=_over_places(one, 3, leave, f"{mine} = {zero};"),
                more=_over_places(one, 4, f"{mine} += eatss_part(&{found});"),
                **words,
            )
        return _PUT_TOGETHER.format(**words)

    def _looked_back(self, node: LookBack, words: _Words) -> str:
        kind = node.value.buffer.element_type
        neutral = constant_text(node.combiner.neutral(kind), kind)
        made = combined(node.combiner, "a", "b")
        combine = f"[]({kind.value} a, {kind.value} b) {{{{ return {made}; }}}}"
        text = "{value} = eatss_before_tile(&{found}, {run}, {tile}, {first}, {value}, "
        return (text + f"({kind.value}){neutral}, {combine});").format(**words)

    def _aligned(self, node: Aligned, words: _Words) -> str:
        """Return the test of where rows begin; what does not change with sizes is left out."""
        strides = [
            one
            for one in node.strides
            if not isinstance(one, Constant) or (one.value % node.width and node.width % one.value)
        ]
        whole = [self._expression(equals(one % node.width, 0)) for one in strides]
        tests = " && ".join((f"eatss_is_aligned({node.buffer.name})", *whole))
        return f"const bool {words['name']} = {tests};"

    def _perform(self, node: Intrinsic, _: _Words) -> str:
        texts = {name: ", ".join(map(self._element, own)) for name, own in node.operands}
        for name, value in node.immediates:
            texts[name] = str(value) if isinstance(value, int) else self._expression(value)
        return node.instruction.cuda.format(**texts)

    def _copy(self, node: Copy, words: _Words) -> str:
        """Return a copy: by itself, ahead, or of several elements."""
        clears, wide = node.clears and node.condition is not None, node.width > 1
        if not wide and not node.ahead:
            zero = constant_text(0, node.target.buffer.element_type)
            text = f"{{target}} = {{condition}} ? {{source}} : {zero};"
            text = text if clears else "{target} = {source};"
        else:
            kind = node.kind if node.ahead else BY_THREADS
            name = function(kind, node.target.buffer.space, wide=wide, clears=clears)
            reads = ", {condition}" if clears else "" if wide else ", true"
            text = f"{name}(&{{target}}, &{{source}}{reads});"
        if node.condition is not None and not clears:
            text = f"if ({{condition}}) {text}"
        return text.format(**words)

    def _flag(self, node: Flag, words: _Words) -> str:
        first = "true" if node.first == Constant(1) else words["first"]
        return f"bool {words['name']} = {first};"

    def _reciprocal(self, node: Reciprocal, words: _Words) -> str:
        kind = type_text(node.target.buffer.element_type)
        texts = ", ".join(filter(None, (words["source"], node.flag)))
        return f"{words['target']} = eatss_reciprocal<{kind}>({texts});"

    def _compute(self, node: Compute, words: _Words) -> str:
        printer = self._values(node, node.statement.value)
        own = {number: self._element(one) for number, one in node.reciprocals}
        printer = replace(printer, flag=node.flag, reciprocals=own, inverts=node.inverts)
        return printer.assigned(words["target"])

    def _values(self, node: Compute | Load, value: Expression) -> ValuePrinter:
        """Return what prints a value that a node computes."""
        values = {
            id(function.value): self._cast(integer)
            for function, integer in zip(affine_values(value), node.integers, strict=True)
        }
        return ValuePrinter(
            statement=node.statement,
            reads=[self._element(read) for read in node.reads],
            affine=lambda function: values[id(function)],
            types=node.types,
            index_bits=self._kernel.index_bits,
        )

    # Expressions -------------------------------------------------------------------------

    def _expression(self, expression: IntExpr) -> str:
        """Return the text of an expression."""
        return generated_text(self._cast(expression))

    def _cast(self, expression: IntExpr) -> IntExpr:
        """Return an expression in which the hardware's unsigned numbers become indices."""
        cast = {
            name: Name(f"({self._index}){name}")
            for name in names_in(expression)
            if name.startswith((CUDA.block, CUDA.blocks))
        }
        return substitute(expression, cast) if cast else expression

    def _element(self, element: Element) -> str:
        buffer, subscripts = element.buffer, element.subscripts
        if buffer.space == "argument":
            return buffer.name
        if buffer.space == "global":
            return f"{buffer.name}[{self._expression(buffer.layout.address(subscripts))}]"
        places = "".join(f"[{self._expression(one)}]" for one in subscripts)
        home = f"{SHARED}." if buffer.space == "shared" else ""
        return f"{home}{buffer.name}{places}"


def _declared(c_type: str, buffer: Buffer) -> str:
    sizes = "".join(f"[{generated_text(size)}]" for size in buffer.layout.allocated)
    return f"{c_type} {buffer.name}{sizes};"


def _over_places(one: PartialSum, depth: int, *texts: str) -> str:
    """Return statements for each place of a sum in registers, so deep in what stands around."""
    lines = Lines(depth)
    with ExitStack() as around:
        for name, extent in zip(one.counters, one.extents, strict=True):
            lines.add("#pragma unroll")
            head = f"for (int {name} = 0; {name} < {extent}; ++{name})"
            around.enter_context(lines.block(head))
        lines.add(*texts)
    return lines.text()
