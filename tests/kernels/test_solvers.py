"""Factorisations reproduce their matrix, solvers solve, statistics equal NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Draw = Callable[..., Any]
Computes = Callable[..., Any]
Close = Callable[..., None]


def test_lu_leaves_factors_whose_product_is_the_matrix(
    computes: Computes, close: Close, draw: Draw
) -> None:
    a = draw(11, 11)
    np.fill_diagonal(a, draw(11, low=10.0, high=12.0))
    after = computes("lu", {"N": 11}, {"A": a}, {}, changed=("A",))["A"]
    close(np.tril(after) @ (np.triu(after, 1) + np.eye(11)), a)


def test_cholesky_leaves_the_lower_factor_and_its_reciprocal_diagonal(
    computes: Computes, draw: Draw
) -> None:
    root = draw(11, 11)
    a = (root @ root.T + 11 * np.eye(11)).astype(np.float32).astype(np.float64)
    factor = np.linalg.cholesky(a)
    given = np.where(np.tri(11, k=-1, dtype=bool), np.nan, a)
    computes(
        "cholesky",
        {"N": 11},
        {"A": given},
        {"A": np.triu(a) + np.tril(factor, -1), "p": 1 / np.diag(factor)},
    )


def test_gramschmidt_is_the_qr_decomposition_with_positive_diagonal(
    computes: Computes, draw: Draw
) -> None:
    a = draw(13, 7)
    np.fill_diagonal(a, draw(7, low=2.0, high=4.0))
    q, r = np.linalg.qr(a)
    sign = np.sign(np.diag(r))
    q, r = q * sign, r * sign[:, None]
    below = np.tri(7, k=-1, dtype=bool)
    computes(
        "gramschmidt",
        {"NI": 13, "NJ": 7},
        {"A": a},
        {"Q": q, "R": np.where(below, np.nan, r), "A": q * np.diag(r)},
    )


def test_trisolv_solves_the_lower_triangular_system(computes: Computes, draw: Draw) -> None:
    a, c = draw(11, 11), draw(11)
    np.fill_diagonal(a, draw(11, low=2.0, high=4.0))
    x = np.linalg.solve(np.tril(a), c)
    given = np.where(np.tri(11, dtype=bool), a, np.nan)
    computes("trisolv", {"N": 11}, {"A": given, "c": c}, {"x": x})


def test_durbin_solves_the_toeplitz_system(computes: Computes, draw: Draw) -> None:
    r = draw(11) / 2.0 ** np.arange(2, 13)
    row = np.concatenate([[1.0], r[:-1]])
    offset = np.abs(np.subtract.outer(np.arange(11), np.arange(11)))
    computes("durbin", {"N": 11}, {"r": r}, {"out": np.linalg.solve(row[offset], -r)})


def test_correlation_is_numpys_and_a_constant_column_correlates_with_nothing(
    computes: Computes, draw: Draw
) -> None:
    data = draw(13, 7, low=-4.0, high=4.0)
    data[:, 3] = 2.0
    varying = np.arange(7) != 3
    symmat = np.eye(7)
    symmat[np.ix_(varying, varying)] = np.corrcoef(data[:, varying], rowvar=False)
    stddev = np.where(varying, data.std(axis=0), 1.0)
    centred = data - data.mean(axis=0)
    computes(
        "correlation",
        {"N": 13, "M": 7},
        {"data": data},
        {
            "mean": data.mean(axis=0),
            "stddev": stddev,
            "data": centred / (np.sqrt(13) * stddev),
            "symmat": symmat,
        },
    )


def test_covariance_is_numpys(computes: Computes, draw: Draw) -> None:
    data = draw(13, 7)
    mean = data.mean(axis=0)
    computes(
        "covariance",
        {"N": 13, "M": 7},
        {"data": data},
        {"mean": mean, "data": data - mean, "symmat": np.cov(data, rowvar=False)},
    )


def test_floyd_warshall_finds_the_shortest_paths(computes: Computes, draw: Draw) -> None:
    edges = draw(13, 13, low=0.5, high=10.0)
    np.fill_diagonal(edges, 0.0)
    shortest = edges
    for _ in range(4):  # paths of up to 2, 4, 8, 16 edges
        shortest = (shortest[:, :, None] + shortest[None, :, :]).min(axis=1)
    assert (shortest < edges).any()
    computes("floyd-warshall", {"N": 13}, {"path": edges}, {"path": shortest})
