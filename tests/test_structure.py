"""No file of eatss and no package of it needs itself, whether to run or for its types alone.

The graph is read off the source: every import counts, also those inside functions and under
``if TYPE_CHECKING``. A module that stands directly in ``eatss/`` is a package of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import networkx as nx  # type: ignore[import-untyped]
import pytest

import eatss

EATSS = Path(__file__).parents[1] / "eatss"


def module_name(path: Path) -> str:
    parts = path.relative_to(EATSS.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the modules that a file imports, names of a package as the modules they are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else str(node.module)


@pytest.fixture(scope="module")
def files() -> nx.DiGraph:
    """Return which module imports which."""
    paths = {module_name(path): path for path in EATSS.rglob("*.py")}
    graph: nx.DiGraph = nx.DiGraph()
    for name, path in paths.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        needed = set(imported(tree, set(paths))) & set(paths)
        graph.add_edges_from((name, other) for other in needed - {name})
    return graph


def cycles(graph: nx.DiGraph) -> list[str]:
    """Return a cycle of each knot of modules, as text."""
    knots = [graph.subgraph(knot) for knot in nx.strongly_connected_components(graph)]
    found = [nx.find_cycle(knot) for knot in knots if len(knot) > 1]
    return sorted(" → ".join([*(user for user, _ in cycle), cycle[0][0]]) for cycle in found)


def test_no_file_needs_itself(files: nx.DiGraph) -> None:
    assert len(files) > 200
    assert not cycles(files), "\n".join(["files that need themselves:", *cycles(files)])


def test_no_package_needs_itself(files: nx.DiGraph) -> None:
    packages: nx.DiGraph = nx.DiGraph()
    for user, used in files.edges:
        pair = tuple(".".join(name.split(".")[:2]) for name in (user, used))
        if pair[0] != pair[1]:
            packages.add_edge(*pair)
    assert not cycles(packages), "\n".join(["packages that need themselves:", *cycles(packages)])


def test_a_cycle_is_found_and_shown() -> None:
    tree = ast.parse("def f():\n    from eatss.cards import load\n    import eatss.base.files\n")
    assert list(imported(tree, {"eatss.cards.load"})) == ["eatss.cards.load", "eatss.base.files"]
    assert cycles(nx.DiGraph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])) == ["a → b → c → a"]


def test_no_package_hides_something_public(files: nx.DiGraph) -> None:
    """Importing ``eatss.NAME`` would put the package in the place of the function."""
    packages = {name.split(".")[1] for name in files if "." in name}
    assert "session" in packages
    assert not packages & set(eatss.__all__)


def test_every_name_that_a_package_exports_is_there() -> None:
    """They load on first use, from the files that packages name."""
    found = [import_module(f"eatss.{one.name}") for one in iter_modules([EATSS]) if one.ispkg]
    for package in (eatss, *found):
        for name in getattr(package, "__all__", ()):
            assert hasattr(package, name), (package.__name__, name)
