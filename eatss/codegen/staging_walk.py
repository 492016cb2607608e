"""How the threads of a block walk a box of elements that they copy together."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from eatss.codegen.names import NameTable
from eatss.codegen.staging import SharedTile


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """A loop over a thread's elements of a box, as C text.

    ``before`` stands in front of the loop; ``places`` are the indices of an element in the box.
    """

    before: tuple[str, ...]
    head: str
    places: tuple[str, ...]


def walk_of(tile: SharedTile, threads: int, thread: str, names: NameTable) -> Walk:
    """Return how a block copies a tile, neighbouring threads neighbouring elements.

    Where the threads fill whole rows, a thread stays in its column and its row grows by a
    constant, so that nothing is divided in the loop.

    Args:
        tile: the box.
        threads: of the block.
        thread: the C variable that numbers the threads of a block.
        names: names that are free here.
    """
    long = [k for k, size in enumerate(tile.sizes) if size > 1]
    rows, columns = (tile.sizes[long[0]], tile.sizes[long[1]]) if len(long) == 2 else (0, 0)
    if rows and threads % columns == 0 and tile.elements % threads == 0:
        return _by_rows(tile, long[0], long[1], threads // columns, thread, names)
    return _by_number(tile, threads, thread, names)


def _by_rows(
    tile: SharedTile, row_at: int, column_at: int, step: int, thread: str, names: NameTable
) -> Walk:
    rows, columns = tile.sizes[row_at], tile.sizes[column_at]
    turn = names.fresh("e")
    places = ["0"] * len(tile.sizes)
    places[column_at] = f"{thread} % {columns}"
    first = f"{thread} / {columns}"
    places[row_at] = first if rows == step else f"{first} + {step} * {turn}"
    return Walk(
        before=("#pragma unroll",),
        head=f"for (int {turn} = 0; {turn} < {rows // step}; ++{turn})",
        places=tuple(places),
    )


def _by_number(tile: SharedTile, threads: int, thread: str, names: NameTable) -> Walk:
    element = names.fresh("e")
    return Walk(
        before=(),
        head=f"for (int {element} = {thread}; {element} < {tile.elements}; {element} += {threads})",
        places=_unravel(element, tile.sizes),
    )


def _unravel(element: str, sizes: tuple[int, ...]) -> tuple[str, ...]:
    """Return the indices of the element with a number, in row-major order."""
    places = []
    for position in range(len(sizes)):
        inner = prod(sizes[position + 1 :])
        if sizes[position] == 1:
            places.append("0")
            continue
        text = element if inner == 1 else f"{element} / {inner}"
        whole = prod(sizes[position:]) == prod(sizes)
        places.append(text if whole else f"{text} % {sizes[position]}")
    return tuple(places)
