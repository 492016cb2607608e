"""``Kernel`` → the text of a CUDA function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eatss.cuda.text import Lines, constant_text, type_text
from eatss.cuda.value_text import ValuePrinter
from eatss.kernel.nodes import (
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
    Evaluate,
    Fill,
    For,
    If,
    Kernel,
    Let,
    Node,
    PartialSum,
    Perform,
    PutTogether,
    Scope,
    Source,
    Wait,
)
from eatss.kernel.uses import affine_values
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
from eatss.program.source_names import SHARED, generated_text, size_text
from eatss.targets import CUDA


def kernel_text(kernel: Kernel, file: str, *, line_info: bool) -> str:
    """Return a kernel as CUDA, the structure of its shared memory in front.

    Args:
        kernel: what it does.
        file: the source, for comments.
        line_info: name the lines of the source to compilers (``#line``) instead of to readers.
    """
    return _Printer(kernel, file, line_info=line_info).text()


_WIDELY = {"global": "store", "shared": "copy", "register": "load"}
"""What a copy of several elements is called, by where they go."""


class _Printer:
    def __init__(self, kernel: Kernel, file: str, *, line_info: bool) -> None:
        self._kernel, self._file, self._line_info = kernel, file, line_info
        self._index = "int" if kernel.index_bits == 32 else "long"
        self._lines = Lines()

    def text(self) -> str:
        """Return all of it."""
        kernel, lines = self._kernel, self._lines
        if kernel.shared:
            with lines.block(f"struct {kernel.name}_shared", ";"):
                self._overlaid()
                for buffer in kernel.boxes_apart:
                    lines.add(_box(f"EATSS_TRACKED({type_text(buffer.element_type)})", buffer))
            lines.add("")
        declared = ", ".join(self._argument(argument) for argument in kernel.arguments)
        bounds = (
            f"{kernel.threads}" if kernel.resident == 1 else f"{kernel.threads}, {kernel.resident}"
        )
        lines.add(f'extern "C" __global__ void __launch_bounds__({bounds})')
        lines.add(f"{kernel.name}({declared})", "{")
        with lines.indented():
            if kernel.shared:
                macro = "EATSS_DYNAMIC_SHARED" if kernel.dynamic_shared else "EATSS_SHARED"
                lines.add(f"{macro}({kernel.name}_shared, {SHARED});")
            self._all(kernel.body)
        lines.add("}")
        return lines.text()

    def _overlaid(self) -> None:
        """Print the groups of boxes that lie in the same memory, numbered from 1."""
        groups = self._kernel.overlaid_boxes
        if not groups:
            return
        with self._lines.block("union", ";"):
            for number, boxes in enumerate(groups, start=1):
                with self._lines.block("struct", ";"):
                    for one in boxes:
                        c_type = f"EATSS_OVERLAID({type_text(one.element_type)}, {number})"
                        self._lines.add(_box(c_type, one))

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
            elif isinstance(node, AllFinite):
                self._all_finite(node)
            elif isinstance(node, PutTogether):
                self._put_together(node)
            else:
                self._lines.add(self._line(node))

    def _for(self, loop: For) -> None:
        if loop.unroll is not None:
            steps = "" if loop.unroll == "whole" else f" {loop.unroll}"
            self._lines.add(f"#pragma unroll{steps}")
        counter, c_type = loop.counter, self._type(narrow=loop.narrow)
        step = self._expression(loop.step)
        increment = f"++{counter}" if loop.step == Constant(1) else f"{counter} += {step}"
        start, condition = self._expression(loop.lower), self._expression(loop.condition)
        if loop.cycle is not None:
            name, last = loop.cycle.name, loop.cycle.count - 1
            start += f", {name} = 0"
            increment += f", {name} = {name} == {last} ? 0 : {name} + 1"
        with self._lines.block(f"for ({c_type} {counter} = {start}; {condition}; {increment})"):
            self._all(loop.body)

    def _all_finite(self, node: AllFinite) -> None:
        name, counter = node.name, node.counter
        self._lines.add(f"bool {name} = {self._expression(node.unless)};")
        with self._lines.block(f"if (!{name})"):
            self._lines.add(f"{name} = true;")
            for share in node.shares:
                test = f"{name} &= eatss_is_finite({self._element(share.element)});"
                if share.count == 1:
                    self._lines.add(test)
                    continue
                first, count = self._expression(node.thread), share.count
                # unrolled, it made NVRTC 13.0 keep all registers of a trmm in memory, and wrong
                self._lines.add("#pragma unroll 1")
                head = f"for (int {counter} = {first}; {counter} < {count}; "
                with self._lines.block(f"{head}{counter} += {node.threads})"):
                    self._lines.add(test)
            self._lines.add(f"{name} = __syncthreads_and({name});")

    def _put_together(self, node: PutTogether) -> None:
        lines, name, number = self._lines, node.name, self._expression(node.number)
        thread, arrived = self._expression(node.thread), f"&{self._element(node.arrived)}"
        lines.add(f"bool {name} = true;")
        with lines.block(f"if ({number} > 1)"):
            ticket = f"{thread} != 0 || eatss_comes_last({arrived}, {number})"
            lines.add(f"{name} = __syncthreads_and({ticket});")
            with lines.block(f"if (!{name})", " else {"):
                for one in node.sums:
                    part = (
                        f"eatss_leave_part(&{self._element(one.left)}, {self._element(one.sum)});"
                    )
                    self._over_places(one, part)
                lines.add(
                    "__syncthreads();", f"if ({thread} == 0) eatss_parts_are_there({arrived});"
                )
            with lines.indented():
                lines.add(f"if ({thread} == 0) eatss_wait_for_parts({arrived}, {number});")
                lines.add("__syncthreads();")
                for one in node.sums:
                    self._added_up(node, one, number)
            lines.add("}")

    def _added_up(self, node: PutTogether, one: PartialSum, number: str) -> None:
        """Print the sum of all parts, in the order of the blocks.

        A part may change places with the one before it. A later one goes to memory and back, so
        that registers hold one set of sums.
        """
        own, mine = self._expression(node.own), self._element(one.sum)
        zero = constant_text(0, one.sum.buffer.element_type)
        with self._lines.block(f"if ({own} > 1)"):
            left = f"eatss_leave_part(&{self._element(one.left)}, {mine});"
            self._over_places(one, left, f"{mine} = {zero};")
        head = f"for (int {node.part} = 0; {node.part} < {number}; ++{node.part})"
        with self._lines.block(head), self._lines.block(f"if ({node.part} != {own} || {own} > 1)"):
            self._over_places(one, f"{mine} += eatss_part(&{self._element(one.found)});")

    def _over_places(self, one: PartialSum, *texts: str) -> None:
        """Print statements for each place of a sum in registers."""
        if not one.counters:
            self._lines.add(*texts)
            return
        name, extent = one.counters[0], one.extents[0]
        inner = replace(one, counters=one.counters[1:], extents=one.extents[1:])
        self._lines.add("#pragma unroll")
        with self._lines.block(f"for (int {name} = 0; {name} < {extent}; ++{name})"):
            self._over_places(inner, *texts)

    def _if(self, node: If) -> None:
        head = f"if ({self._conditions(node.conditions)})"
        if not node.orelse:
            with self._lines.block(head):
                self._all(node.body)
            return
        with self._lines.block(head, " else {"):
            self._all(node.body)
        with self._lines.indented():
            self._all(node.orelse)
        self._lines.add("}")

    def _conditions(self, conditions: Sequence[IntExpr]) -> str:
        if len(conditions) == 1:
            return self._expression(conditions[0])
        texts = [
            f"({self._expression(one)})" if _is_or(one) else self._expression(one)
            for one in conditions
        ]
        return " && ".join(texts)

    def _line(self, node: Node) -> str:
        if isinstance(node, Let):
            c_type = self._type(narrow=node.narrow)
            return f"const {c_type} {node.name} = {self._expression(node.value)};"
        if isinstance(node, Declare):
            buffer = node.buffer
            sizes = "".join(f"[{generated_text(size)}]" for size in buffer.layout.allocated)
            return f"{type_text(buffer.element_type)} {buffer.name}{sizes};"
        if isinstance(node, Source):
            file = node.file or self._file
            if self._line_info:
                return f'#line {node.line} "{file}"'
            return f"// {file}:{node.line}: {node.text}"
        if isinstance(node, Barrier | Commit | Wait):
            return _waiting(node)
        return self._action(node)

    def _aligned(self, node: Aligned) -> str:
        """Return the test of where rows begin; what does not change with sizes is left out."""
        texts = [f"eatss_is_aligned({node.buffer.name})"]
        for stride in node.strides:
            rest = stride % node.width
            if not isinstance(stride, Constant):
                texts.append(self._expression(equals(rest, 0)))
        return f"const bool {node.name} = {' && '.join(texts)};"

    def _action(self, node: Node) -> str:
        """Return what changes memory, or asks how it lies."""
        if isinstance(node, Aligned):
            return self._aligned(node)
        if isinstance(node, Compute):
            return self._compute(node)
        if isinstance(node, Evaluate):
            return f"{self._element(node.target)} = {self._part(node)};"
        if isinstance(node, Fill):
            value = constant_text(node.value, node.target.buffer.element_type)
            return f"{self._element(node.target)} = {value};"
        if isinstance(node, Perform):
            texts = {name: ", ".join(map(self._element, own)) for name, own in node.operands}
            return node.instruction.cuda.format(**texts, **dict(node.immediates))
        assert isinstance(node, Copy)
        return self._copy(node)

    def _copy(self, node: Copy) -> str:
        target, source = self._element(node.target), self._element(node.source)
        if node.ahead:
            return self._ahead(node, target, source)
        if node.width > 1:
            return self._wide(node, f"{_WIDELY[node.target.buffer.space]}_wide", target, source)
        if node.clears and node.condition is not None:
            zero = constant_text(0, node.target.buffer.element_type)
            return f"{target} = {self._expression(node.condition)} ? {source} : {zero};"
        prefix = "" if node.condition is None else f"if ({self._expression(node.condition)}) "
        return f"{prefix}{target} = {source};"

    def _ahead(self, node: Copy, target: str, source: str) -> str:
        if node.width > 1:
            return self._wide(node, "copy_wide_ahead", target, source)
        if node.condition is None:
            return f"eatss_copy_ahead(&{target}, &{source}, true);"
        condition = self._expression(node.condition)
        if node.clears:
            return f"eatss_copy_ahead(&{target}, &{source}, {condition});"
        return f"if ({condition}) eatss_copy_ahead(&{target}, &{source}, true);"

    def _wide(self, node: Copy, name: str, target: str, source: str) -> str:
        if node.condition is None:
            return f"eatss_{name}(&{target}, &{source});"
        condition = self._expression(node.condition)
        if node.clears:
            return f"eatss_{name}_or_clear(&{target}, &{source}, {condition});"
        return f"if ({condition}) eatss_{name}(&{target}, &{source});"

    def _compute(self, node: Compute) -> str:
        functions = affine_values(node.statement.value)
        values = {
            id(function.value): self._cast(value)
            for function, value in zip(functions, node.integers, strict=True)
        }
        printer = ValuePrinter(
            statement=node.statement,
            reads=[self._element(read) for read in node.reads],
            affine=lambda function: values[id(function)],
            types=node.types,
            index_bits=self._kernel.index_bits,
        )
        target = self._element(node.target)
        if node.by is None:
            return printer.assigned(target)
        instruction, parts = node.by
        texts = {name: printer.operand(part) for name, part in parts}
        return instruction.cuda.format(**texts)

    def _part(self, node: Evaluate) -> str:
        printer = ValuePrinter(
            statement=node.statement,
            reads=[self._element(read) for read in node.reads],
            affine=_no_affine_value,
            types=node.types,
            index_bits=self._kernel.index_bits,
        )
        return printer.emit(node.part).text

    # Expressions -------------------------------------------------------------------------

    def _type(self, *, narrow: bool) -> str:
        return "int" if narrow else self._index

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
        places = "".join(f"[{self._expression(one)}]" for one in buffer.layout.place(subscripts))
        home = f"{SHARED}." if buffer.space == "shared" else ""
        return f"{home}{buffer.name}{places}"


def _box(c_type: str, buffer: Buffer) -> str:
    sizes = "".join(f"[{generated_text(size)}]" for size in buffer.layout.allocated)
    return f"{c_type} {buffer.name}{sizes};"


def _waiting(node: Barrier | Commit | Wait) -> str:
    if isinstance(node, Wait):
        return f"eatss_wait_for_copies<{node.pending}>();"
    return "__syncthreads();" if isinstance(node, Barrier) else "eatss_commit_copies();"


def _no_affine_value(_: object) -> IntExpr:
    raise ValueError("a part of a value is evaluated that depends on counters")


def _is_or(expression: IntExpr) -> bool:
    return isinstance(expression, Apply) and expression.operator is Operator.OR
