"""Matrix and vector products equal NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

Draw = Callable[..., Any]
Computes = Callable[..., Any]

ALPHA, BETA = 1.5, -0.75


def test_matmul_adds_the_product_to_its_output(computes: Computes, draw: Draw) -> None:
    out, left, right = draw(5, 7), draw(5, 11), draw(11, 7)
    computes(
        "matmul",
        {"NI": 5, "NJ": 7, "NK": 11},
        {"Out": out, "In": left, "Ker": right},
        {"Out": out + left @ right},
    )


def test_gemm_is_the_scaled_product_plus_the_scaled_output(computes: Computes, draw: Draw) -> None:
    c, a, b = draw(5, 7), draw(5, 11), draw(11, 7)
    computes(
        "gemm",
        {"NI": 5, "NJ": 7, "NK": 11},
        {"alpha": ALPHA, "beta": BETA, "C": c, "A": a, "B": b},
        {"C": ALPHA * a @ b + BETA * c},
    )


def test_2mm_is_two_products_in_a_row(computes: Computes, draw: Draw) -> None:
    a, b, c, d = draw(5, 11), draw(11, 7), draw(7, 13), draw(5, 13)
    computes(
        "2mm",
        {"NI": 5, "NJ": 7, "NK": 11, "NL": 13},
        {"alpha": ALPHA, "beta": BETA, "A": a, "B": b, "C": c, "D": d},
        {"tmp": ALPHA * a @ b, "D": ALPHA * a @ b @ c + BETA * d},
    )


def test_3mm_is_the_product_of_two_products(computes: Computes, draw: Draw) -> None:
    a, b, c, d = draw(5, 11), draw(11, 7), draw(7, 17), draw(17, 13)
    computes(
        "3mm",
        {"NI": 5, "NJ": 7, "NK": 11, "NL": 13, "NM": 17},
        {"A": a, "B": b, "C": c, "D": d},
        {"E": a @ b, "F": c @ d, "G": np.linalg.multi_dot([a, b, c, d])},
    )


def test_atax_applies_the_matrix_and_its_transpose(computes: Computes, draw: Draw) -> None:
    a, x = draw(5, 7), draw(7)
    computes("atax", {"NX": 5, "NY": 7}, {"A": a, "x": x}, {"tmp": a @ x, "y": a.T @ a @ x})


def test_bicg_applies_both_to_vectors_of_their_own(computes: Computes, draw: Draw) -> None:
    a, p, r = draw(5, 7), draw(7), draw(5)
    computes("bicg", {"NX": 5, "NY": 7}, {"A": a, "p": p, "r": r}, {"s": a.T @ r, "q": a @ p})


def test_mvt_adds_both_products(computes: Computes, draw: Draw) -> None:
    x1, x2, y1, y2, a = draw(7), draw(7), draw(7), draw(7), draw(7, 7)
    computes(
        "mvt",
        {"NI": 7},
        {"x1": x1, "x2": x2, "y1": y1, "y2": y2, "A": a},
        {"x1": x1 + a @ y1, "x2": x2 + a.T @ y2},
    )


def test_gemver_updates_the_matrix_then_multiplies_with_it(computes: Computes, draw: Draw) -> None:
    a = draw(7, 7)
    u1, v1, u2, v2, w, x, y, z = (draw(7) for _ in range(8))
    a_after = a + np.outer(u1, v1) + np.outer(u2, v2)
    x_after = x + BETA * a_after.T @ y + z
    computes(
        "gemver",
        {"N": 7},
        {"alpha": ALPHA, "beta": BETA, "A": a, "u1": u1, "v1": v1, "u2": u2, "v2": v2}
        | {"w": w, "x": x, "y": y, "z": z},
        {"A": a_after, "x": x_after, "w": w + ALPHA * a_after @ x_after},
    )


def test_gesummv_is_a_weighted_sum_of_two_products(computes: Computes, draw: Draw) -> None:
    a, b, x = draw(7, 7), draw(7, 7), draw(7)
    computes(
        "gesummv",
        {"N": 7},
        {"alpha": ALPHA, "beta": BETA, "A": a, "B": b, "x": x},
        {"tmp": a @ x, "y": ALPHA * a @ x + BETA * b @ x},
    )


def test_symm_reads_the_lower_triangle_as_a_symmetric_matrix(
    computes: Computes, draw: Draw
) -> None:
    a, b, c = draw(5, 5), draw(5, 7), draw(5, 7)
    symmetric = np.tril(a) + np.tril(a, -1).T
    a[np.triu_indices(5, 1)] = np.nan
    computes(
        "symm",
        {"NI": 5, "NJ": 7},
        {"alpha": ALPHA, "beta": BETA, "A": a, "B": b, "C": c},
        {"C": ALPHA * symmetric @ b + BETA * c},
    )


def test_syrk_is_a_product_with_its_own_transpose(computes: Computes, draw: Draw) -> None:
    a, c = draw(5, 7), draw(5, 5)
    computes(
        "syrk",
        {"NI": 5, "NJ": 7},
        {"alpha": ALPHA, "beta": BETA, "A": a, "C": c},
        {"C": ALPHA * a @ a.T + BETA * c},
    )


def test_syr2k_adds_the_product_and_its_transpose(computes: Computes, draw: Draw) -> None:
    a, b, c = draw(5, 7), draw(5, 7), draw(5, 5)
    computes(
        "syr2k",
        {"NI": 5, "NJ": 7},
        {"alpha": ALPHA, "beta": BETA, "A": a, "B": b, "C": c},
        {"C": ALPHA * (a @ b.T + b @ a.T) + BETA * c},
    )


def test_trmm_multiplies_by_a_unit_triangle_transposed(computes: Computes, draw: Draw) -> None:
    a, b = draw(7, 7), draw(7, 7)
    unit = np.tril(a, -1) + np.eye(7)
    a[np.triu_indices(7)] = np.nan
    computes("trmm", {"NI": 7}, {"alpha": ALPHA, "A": a, "B": b}, {"B": ALPHA * unit.T @ b})


def test_doitgen_multiplies_every_row_by_one_matrix(computes: Computes, draw: Draw) -> None:
    a, c4 = draw(3, 5, 7), draw(7, 7)
    product = np.einsum("rqs,sp->rqp", a, c4)
    computes(
        "doitgen",
        {"NR": 3, "NQ": 5, "NP": 7},
        {"A": a, "C4": c4},
        {"A": product, "sum": product},
    )


def test_mttkrp_contracts_two_modes_of_the_tensor(computes: Computes, draw: Draw) -> None:
    a, t, b, c = draw(3, 11), draw(3, 5, 7), draw(5, 11), draw(7, 11)
    computes(
        "mttkrp",
        {"NI": 3, "NJ": 5, "NK": 7, "NR": 11},
        {"A": a, "T": t, "B": b, "C": c},
        {"A": a + np.einsum("ijk,jr,kr->ir", t, b, c)},
    )


def test_conv_2d_slides_each_channels_kernel_over_its_plane(computes: Computes, draw: Draw) -> None:
    image, kernel, out = draw(2, 7, 11), draw(2, 2, 3), draw(2, 6, 9)
    windows = sliding_window_view(image, (2, 3), axis=(1, 2))
    computes(
        "conv-2d",
        {"NC": 2, "NH": 7, "NW": 11, "NKH": 2, "NKW": 3},
        {"In": image, "Ker": kernel, "Out": out},
        {"Out": out + np.einsum("chwij,cij->chw", windows, kernel)},
    )
