"""Stencils equal their formulas written on whole slices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Draw = Callable[..., Array]
Computes = Callable[..., Any]


def test_jacobi_1d_averages_three_points(computes: Computes, draw: Draw) -> None:
    a, b = draw(17), draw(17)
    line, mean = a.copy(), b.copy()
    for _ in range(3):
        mean[1:-1] = np.convolve(line, np.full(3, 1 / 3), mode="valid")
        line[1:-1] = mean[1:-1]
    computes("jacobi-1d", {"TSTEPS": 3, "N": 17}, {"A": a, "B": b}, {"A": line, "B": mean})


def test_jacobi_2d_averages_five_points(computes: Computes, draw: Draw) -> None:
    a, b = draw(11, 11), draw(11, 11)
    plane, mean = a.copy(), b.copy()
    for _ in range(3):
        cross = plane[:-2, 1:-1] + plane[2:, 1:-1] + plane[1:-1, :-2] + plane[1:-1, 2:]
        mean[1:-1, 1:-1] = (plane[1:-1, 1:-1] + cross) / 5
        plane[1:-1, 1:-1] = mean[1:-1, 1:-1]
    computes("jacobi-2d", {"TSTEPS": 3, "N": 11}, {"A": a, "B": b}, {"A": plane, "B": mean})


def test_seidel_2d_is_one_triangular_solve_a_sweep(computes: Computes, draw: Draw) -> None:
    n = 8
    a = draw(n, n)
    new_side, old_side = _seidel_sides(n)
    plane: Array = a.reshape(-1)
    for _ in range(2):
        plane = np.linalg.solve(new_side, old_side @ plane).astype(np.float64)
    computes("seidel-2d", {"TSTEPS": 2, "N": n}, {"A": a}, {"A": plane.reshape(n, n)})


def _seidel_sides(n: int) -> tuple[Array, Array]:
    """Matrices with `new_side @ after = old_side @ before` for one sweep over n x n points."""
    new_side, old_side = np.eye(n * n), np.eye(n * n)
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            point = i * n + j
            new_side[point, point], old_side[point, point] = 9.0, 0.0
            for neighbour in (point + di * n + dj for di in (-1, 0, 1) for dj in (-1, 0, 1)):
                if neighbour < point:
                    new_side[point, neighbour] -= 1.0
                else:
                    old_side[point, neighbour] += 1.0
    return new_side, old_side


def test_heat_3d_adds_an_eighth_of_the_laplacian(computes: Computes, draw: Draw) -> None:
    a, b = draw(7, 7, 7), draw(7, 7, 7)
    first, second = a.copy(), b.copy()
    inner = (slice(1, -1),) * 3
    for _ in range(2):
        second[inner] = (first + _laplacian(first) / 8)[inner]
        first[inner] = (second + _laplacian(second) / 8)[inner]
    computes("heat-3d", {"TSTEPS": 2, "N": 7}, {"A": a, "B": b}, {"A": first, "B": second})


def _laplacian(field: Array) -> Array:
    """Second differences summed over the axes; right away from the border only."""
    return sum(
        (np.roll(field, 1, axis) - 2 * field + np.roll(field, -1, axis) for axis in range(3)),
        start=np.zeros_like(field),
    )


def test_fdtd_2d_steps_both_fields(computes: Computes, draw: Draw) -> None:
    ex, ey, hz, source = draw(7, 11), draw(7, 11), draw(7, 11), draw(3)
    electric_x, electric_y, magnetic = ex.copy(), ey.copy(), hz.copy()
    for driven in source:
        electric_y[1:] -= np.diff(magnetic, axis=0) / 2
        electric_y[0] = driven
        electric_x[:, 1:] -= np.diff(magnetic, axis=1) / 2
        curl = np.diff(electric_x, axis=1)[:-1] + np.diff(electric_y, axis=0)[:, :-1]
        magnetic[:-1, :-1] -= 0.7 * curl
    computes(
        "fdtd-2d",
        {"TMAX": 3, "NX": 7, "NY": 11},
        {"ex": ex, "ey": ey, "hz": hz, "source": source},
        {"ex": electric_x, "ey": electric_y, "hz": magnetic},
    )


def test_fdtd_apml_updates_the_magnetic_field_and_the_layer(computes: Computes, draw: Draw) -> None:
    cz, cym, cxm = 3, 5, 7
    given: dict[str, Any] = {"mui": 1.5, "ch": 0.75}
    given |= {name: draw(cz + 1, cym + 1, cxm + 1) for name in ("Bza", "Ex", "Ey", "Hz")}
    given |= {"Ax": draw(cz + 1, cxm + 1), "Ry": draw(cz + 1, cym + 1)}
    coefficients = {"czm": cz, "czp": cz, "cxmh": cxm, "cxph": cxm, "cymh": cym, "cyph": cym}
    given |= {name: draw(n + 1, low=1.0, high=2.0) for name, n in coefficients.items()}
    field, layer = _apml(given, cz, cym)
    computes(
        "fdtd-apml",
        {"CZ": cz, "CYM": cym, "CXM": cxm},
        given,
        {"Hz": field, "Bza": layer},
    )


def _apml(given: dict[str, Any], cz: int, cym: int) -> tuple[Array, Array]:
    """Hz and Bza after the kernel: inner rows at once, the row iy = CYM once for each iy."""
    field, layer = given["Hz"].copy(), given["Bza"].copy()
    ex, ey, ch = given["Ex"], given["Ey"], given["ch"]
    ex_below = np.concatenate([ex[:, 1:], given["Ax"][:, None, :]], axis=1)
    ey_right = np.concatenate([ey[:, :, 1:], given["Ry"][:, :, None]], axis=2)
    curl = ex - ex_below + ey_right - ey
    decay = given["cxmh"] / given["cxph"]
    gain = given["mui"] * given["czp"][:cz, None] / given["cxph"]
    loss = given["mui"] * given["czm"][:cz, None] / given["cxph"]
    z = slice(0, cz)

    def update(iy: int, layer_new: Array) -> None:
        field[z, iy] = decay * field[z, iy] + gain * layer_new - loss * layer[z, iy]
        layer[z, iy] = layer_new

    for iy in range(cym):
        cymh, cyph = given["cymh"][iy], given["cyph"][iy]
        update(iy, cymh / cyph * layer[z, iy] - ch / cyph * curl[z, iy])
        boundary = given["cymh"][cym] / cyph * layer[z, iy] - ch / cyph * curl[z, cym]
        cymh, cyph = given["cymh"][cym], given["cyph"][cym]
        corner = cymh / cyph * layer[z, cym] - ch / cyph * curl[z, cym]
        boundary[:, -1] = corner[:, -1]
        update(cym, boundary)
    return field, layer


def test_adi_eliminates_and_sweeps_back_along_rows_then_columns(
    computes: Computes, draw: Draw
) -> None:
    x, a = draw(7, 7), draw(7, 7, low=0.5)
    b = draw(7, 7, low=4.0, high=5.0)
    values, pivots = x, b
    for _ in range(2):
        values, pivots = _eliminate(values, a, pivots)
        values[:, 1:-1] = (values[:, 1:-1] - values[:, :-2] * a[:, :-2]) / pivots[:, :-2]
        columns, pivot_columns = _eliminate(values.T, a.T, pivots.T)
        values, pivots = columns.T.copy(), pivot_columns.T
        values[1:-1] = (values[1:-1] - values[:-2] * a[:-2]) / pivots[1:-1]
    computes("adi", {"TSTEPS": 2, "N": 7}, {"X": x, "A": a, "B": b}, {"X": values, "B": pivots})


def _eliminate(x: Array, a: Array, b: Array) -> tuple[Array, Array]:
    """Along every row: pivots of the tridiagonal matrix (b, a) and its forward substitution.

    A pivot is the quotient of two leading principal minors; the substitution solves with the unit
    lower factor. The last entry is divided by its pivot.
    """
    n = x.shape[1]
    values, pivots = np.empty_like(x), np.empty_like(b)
    for row in range(x.shape[0]):
        off = np.diag(a[row, 1:], 1)
        matrix = np.diag(b[row]) + off + off.T
        minors = np.array([1.0, *(np.linalg.det(matrix[:k, :k]) for k in range(1, n + 1))])
        pivots[row] = minors[1:] / minors[:-1]
        factor = np.eye(n) + np.diag(a[row, 1:] / pivots[row, :-1], -1)
        values[row] = np.linalg.solve(factor, x[row])
        values[row, -1] /= pivots[row, -1]
    return values, pivots
