"""Scops from a few lines of Python, so that the polyhedral part is tested without a C front end.

The source is Python with ``for i in range(a, b[, step])``, affine ``if`` and assignments; the
same text can be executed, which gives the brute-force answers the tests compare with.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import islpy as isl
import pytest
from hypothesis import strategies as st

from eatss.base.diagnostics import SourceSpan
from eatss.polyhedral.expression import (
    AffineValue,
    Array,
    Binary,
    Call,
    ElementType,
    Expression,
    Literal,
    Read,
    Unary,
)
from eatss.polyhedral.scop import Access, AccessKind, Scop, Statement

ScopBuilder = Callable[..., Scop]

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}


class _Builder:
    """Walks the Python tree once and collects statements and arrays."""

    def __init__(self, parameters: Sequence[str], context: str, local: Sequence[str]) -> None:
        self.context_isl = isl.Context()
        self.parameters = tuple(parameters)
        self.prefix = f"[{', '.join(parameters)}] -> "
        self.context = isl.Set.read_from_str(
            self.context_isl, f"{self.prefix}{{ : {context or 'true'} }}"
        )
        self.local = frozenset(local)
        self.statements: list[
            tuple[ast.Assign | ast.AugAssign, list[Any], list[str], list[str]]
        ] = []
        self.dims: dict[str, int] = {}

    def walk(
        self, body: Sequence[ast.stmt], loops: list[str], limits: list[str], path: list[str]
    ) -> None:
        for position, node in enumerate(body):
            here = [*path, str(position)]
            if isinstance(node, ast.For):
                assert isinstance(node.target, ast.Name)
                assert isinstance(node.iter, ast.Call)
                name = node.target.id
                bounds = [ast.unparse(a) for a in node.iter.args]
                low, high = bounds[0], bounds[1]
                limit = f"{low} <= {name} < {high}"
                if len(bounds) == 3:
                    limit += f" and ({name} - ({low})) mod {bounds[2]} = 0"
                self.walk(node.body, [*loops, name], [*limits, limit], [*here, name])
            elif isinstance(node, ast.If):
                self.walk(node.body, loops, [*limits, ast.unparse(node.test)], here)
            else:
                assert isinstance(node, (ast.Assign, ast.AugAssign))
                self.statements.append((node, [], loops, limits))
                self.statements[-1][1].extend(here)

    def affine(self, node: ast.expr, loops: Sequence[str]) -> bool:
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        return names <= {*loops, *self.parameters}

    def access(
        self, node: ast.expr, kind: AccessKind, domain: isl.Set, loops: Sequence[str]
    ) -> Access:
        if isinstance(node, ast.Name):
            name, subscripts = node.id, []
        else:
            assert isinstance(node, ast.Subscript)
            assert isinstance(node.value, ast.Name)
            name = node.value.id
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            subscripts = [ast.unparse(part).replace("//", "/") for part in parts]
        self.dims[name] = len(subscripts)
        tuple_name = domain.get_tuple_name()
        relation = isl.Map.read_from_str(
            self.context_isl,
            f"{self.prefix}{{ {tuple_name}[{', '.join(loops)}]"
            f" -> {name}[{', '.join(subscripts)}] }}",
        ).intersect_domain(domain)
        text = name + "".join(f"[{s}]" for s in subscripts)
        return Access(array=name, kind=kind, relation=relation, text=text, span=_span(node))

    def expression(
        self, node: ast.expr, accesses: list[Access], domain: isl.Set, loops: Sequence[str]
    ) -> Expression:
        if isinstance(node, ast.Constant):
            return Literal(text=str(node.value), element_type=ElementType.DOUBLE)
        if self.affine(node, loops):
            value = isl.PwAff.read_from_str(
                self.context_isl,
                f"{self.prefix}{{ {domain.get_tuple_name()}[{', '.join(loops)}]"
                f" -> [{ast.unparse(node)}] }}",
            )
            return AffineValue(value=value, element_type=ElementType.INT32)
        if isinstance(node, ast.BinOp):
            return Binary(
                operator=_OPERATORS[type(node.op)],
                left=self.expression(node.left, accesses, domain, loops),
                right=self.expression(node.right, accesses, domain, loops),
            )
        if isinstance(node, ast.UnaryOp):
            return Unary(
                operator="-", operand=self.expression(node.operand, accesses, domain, loops)
            )
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return Call(
                function=node.func.id,
                arguments=tuple(self.expression(a, accesses, domain, loops) for a in node.args),
            )
        accesses.append(self.access(node, AccessKind.READ, domain, loops))
        return Read(access=len(accesses) - 1)

    def statement(self, index: int, depth: int) -> Statement:
        node, path, loops, limits = self.statements[index]
        name = f"S{index}"
        condition = " and ".join(limits).replace("==", "=") or "true"
        domain = isl.Set.read_from_str(
            self.context_isl, f"{self.prefix}{{ {name}[{', '.join(loops)}] : {condition} }}"
        )
        time = [*path, *["0"] * (depth - len(path))]
        schedule = isl.Map.read_from_str(
            self.context_isl,
            f"{self.prefix}{{ {name}[{', '.join(loops)}] -> [{', '.join(time)}] }}",
        ).intersect_domain(domain)
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        value = node.value
        if isinstance(node, ast.AugAssign):
            value = ast.BinOp(left=target, op=node.op, right=node.value)
        accesses = [self.access(target, AccessKind.WRITE, domain, loops)]
        tree = self.expression(value, accesses, domain, loops)
        return Statement(
            name=name,
            loops=tuple(loops),
            domain=domain,
            schedule=schedule,
            accesses=tuple(accesses),
            value=tree,
            text=ast.unparse(node),
            span=_span(node),
        )

    def array(self, name: str) -> Array:
        dims = [f"d{k}" for k in range(self.dims[name])]
        extent = isl.Set.read_from_str(
            self.context_isl, f"{self.prefix}{{ {name}[{', '.join(dims)}] }}"
        )
        return Array(
            name=name,
            element_type=ElementType.DOUBLE,
            extent=extent,
            n_dims=len(dims),
            is_local=name in self.local,
        )


def _span(node: ast.AST) -> SourceSpan:
    line = getattr(node, "lineno", 1)
    column = getattr(node, "col_offset", 0) + 1
    return SourceSpan(file="test.c", line=line, column=column, end_line=line, end_column=column + 1)


def build_scop(
    source: str,
    *,
    parameters: Sequence[str] = (),
    context: str = "",
    local: Sequence[str] = (),
) -> Scop:
    """Return the scop of Python text; names in ``local`` are declared inside the region."""
    builder = _Builder(parameters, context, local)
    builder.walk(ast.parse(source).body, [], [], [])
    depth = max(len(path) for _, path, _, _ in builder.statements)
    statements = tuple(builder.statement(k, depth) for k in range(len(builder.statements)))
    arrays = tuple(builder.array(name) for name in builder.dims)
    return Scop(
        file="test.c",
        function="kernel",
        index=0,
        parameters=tuple(parameters),
        context=builder.context,
        arrays=arrays,
        statements=statements,
        span=SourceSpan(file="test.c", line=1, column=1, end_line=1, end_column=1),
    )


@pytest.fixture(scope="session")
def scop_of() -> ScopBuilder:
    """The function that builds a scop from Python text."""
    return build_scop


Instance = tuple[str, tuple[int, ...]]
Element = tuple[str, tuple[int, ...]]
Event = tuple[Instance, Element, tuple[Element, ...]]


def run_program(source: str, values: dict[str, int]) -> list[Event]:  # noqa: C901
    """Run Python text by hand: its instances in order, with what each writes and reads."""
    events: list[Event] = []
    numbers: dict[int, int] = {}

    def number_all(body: Sequence[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.For | ast.If):
                number_all(node.body)
            else:
                numbers[id(node)] = len(numbers)

    def value(node: ast.expr, env: dict[str, int]) -> int:
        return int(eval(ast.unparse(node), {}, env))

    def element(node: ast.expr, env: dict[str, int]) -> Element:
        if isinstance(node, ast.Name):
            return node.id, ()
        assert isinstance(node, ast.Subscript)
        assert isinstance(node.value, ast.Name)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return node.value.id, tuple(value(part, env) for part in parts)

    def reads(node: ast.AST, env: dict[str, int]) -> list[Element]:
        if isinstance(node, ast.Subscript):
            return [element(node, env)]
        if isinstance(node, ast.Name):
            return [] if node.id in env else [(node.id, ())]
        if isinstance(node, ast.Call):
            return [e for a in node.args for e in reads(a, env)]
        return [e for child in ast.iter_child_nodes(node) for e in reads(child, env)]

    def walk(body: Sequence[ast.stmt], env: dict[str, int], loops: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, ast.For):
                assert isinstance(node.target, ast.Name)
                assert isinstance(node.iter, ast.Call)
                bounds = [value(a, env) for a in node.iter.args]
                for counter in range(*bounds):
                    inner = {**env, node.target.id: counter}
                    walk(node.body, inner, (*loops, node.target.id))
            elif isinstance(node, ast.If):
                if eval(ast.unparse(node.test), {}, dict(env)):
                    walk(node.body, env, loops)
            else:
                assert isinstance(node, ast.Assign | ast.AugAssign)
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                used = reads(node.value, env)
                if isinstance(node, ast.AugAssign):
                    used = [element(target, env), *used]
                point = tuple(env[name] for name in loops)
                instance = (f"S{numbers[id(node)]}", point)
                events.append((instance, element(target, env), tuple(used)))

    tree = ast.parse(source).body
    number_all(tree)
    walk(tree, dict(values), ())
    return events


def pairs_of(relation: isl.UnionMap) -> set[tuple[Instance, Instance]]:
    """List a finite relation between instances."""
    found: set[tuple[Instance, Instance]] = set()

    def collect(part: isl.Map) -> None:
        n_in, n_out = part.dim(isl.dim_type.in_), part.dim(isl.dim_type.out)
        names = part.get_tuple_name(isl.dim_type.in_), part.get_tuple_name(isl.dim_type.out)

        def point(p: isl.Point) -> None:
            at = [
                int(p.get_coordinate_val(isl.dim_type.set, k).to_python())
                for k in range(n_in + n_out)
            ]
            found.add(((names[0], tuple(at[:n_in])), (names[1], tuple(at[n_in:]))))

        part.wrap().flatten().foreach_point(point)

    relation.foreach_map(collect)
    return found


@pytest.fixture(scope="session")
def trace() -> Callable[[str, dict[str, int]], list[Event]]:
    """The function that runs Python text by hand."""
    return run_program


@pytest.fixture(scope="session")
def listed() -> Callable[[isl.UnionMap], set[tuple[Instance, Instance]]]:
    """The function that lists a finite relation."""
    return pairs_of


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    """Draw a small program over arrays A and B and a scalar s; and which names are local."""
    lines: list[str] = []
    names = ("i", "j", "k")

    def subscript(loops: tuple[str, ...]) -> str:
        used = [loop for loop in loops if draw(st.booleans())]
        forms = [draw(st.sampled_from([loop, loop, f"2*{loop}", f"3-{loop}"])) for loop in used]
        return "+".join([str(draw(st.integers(0, 2))), *forms])

    def reference(loops: tuple[str, ...]) -> str:
        array = draw(st.sampled_from(["A", "A", "B", "s"]))
        if array == "s":
            return "s"
        if array == "A":
            return f"A[{subscript(loops)}]"
        return f"B[{subscript(loops)},{subscript(loops)}]"

    def block(loops: tuple[str, ...], budget: int) -> int:
        indent = "    " * len(loops)
        for _ in range(draw(st.integers(1, 2))):
            if budget <= 0:
                break
            if len(loops) < 3 and draw(st.booleans()):
                loop = names[len(loops)]
                low = draw(st.sampled_from(["0", "1", *loops]))
                high = draw(st.sampled_from(["3", "4"]))
                step = draw(st.sampled_from(["", "", ", 2"]))
                lines.append(f"{indent}for {loop} in range({low}, {high}{step}):")
                before = len(lines)
                budget = block((*loops, loop), budget)
                if len(lines) == before:
                    lines.pop()
            else:
                operator = draw(st.sampled_from(["=", "+=", "="]))
                used = " + ".join(reference(loops) for _ in range(draw(st.integers(1, 2))))
                lines.append(f"{indent}{reference(loops)} {operator} {used}")
                budget -= 1
        return budget

    block((), draw(st.integers(1, 4)))
    local = ("s",) if draw(st.booleans()) else ()
    return "\n".join(lines) + "\n", local


@pytest.fixture(scope="session")
def small_programs() -> st.SearchStrategy[tuple[str, tuple[str, ...]]]:
    """Random programs for property tests."""
    return programs()
