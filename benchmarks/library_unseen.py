"""Shapes and programs that nobody tuned for, each set chosen when the code of its time was done.

They are in the order in which they were chosen, from :func:`unseen` to :func:`unseen_signs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.library_workloads import (
    PROGRAMS,
    Workload,
    contraction_over_two,
    half_products,
    other_shapes,
    reductions,
    trmm_of,
    workloads,
)


def _gram_batches(torch: Any, G: Any, X: Any) -> None:
    torch.bmm(X.mT, X, out=G)


def _squared_distances(torch: Any, D: Any, X: Any, Y: Any, n: Any, m: Any) -> None:
    torch.add(n[:, None], m, out=D)
    torch.addmm(D, X, Y.T, alpha=-2, out=D)


def _scores(torch: Any, S: Any, Q: Any, K: Any, b: Any, scale: float) -> None:
    torch.baddbmm(b[:, None, :], Q, K.mT, alpha=scale, out=S)


def _trailing_update(torch: Any, C: Any, A: Any, B: Any) -> None:
    torch.addmm(C, A, B, alpha=-1, out=C)


def _complex_product(torch: Any, Cr: Any, Ci: Any, Ar: Any, Ai: Any, Br: Any, Bi: Any) -> None:
    torch.mm(Ar, Br, out=Cr)
    torch.addmm(Cr, Ai, Bi, alpha=-1, out=Cr)
    torch.mm(Ar, Bi, out=Ci)
    torch.addmm(Ci, Ai, Br, out=Ci)


def _scatter_matrix(torch: Any, S: Any, X: Any, m: Any) -> None:
    centred = X - m
    torch.mm(centred.T, centred, out=S)


def _mixed_values(torch: Any, O: Any, P: Any, V: Any) -> None:  # noqa: E741 - its name in the program
    torch.bmm(P, V, out=O)


def _dense_layer(torch: Any, Y: Any, X: Any, W: Any, b: Any) -> None:
    torch.addmm(b, X, W.T, out=Y)
    torch.relu_(Y)


def _congruence(torch: Any, M: Any, T: Any, W: Any, A: Any) -> None:
    torch.mm(W, A, out=T)
    torch.mm(A.T, T, out=M)


def _embedded_projection(torch: Any, Y: Any, X: Any, P: Any, W: Any) -> None:
    torch.matmul(X + P, W, out=Y)


def _weighted_scores(torch: Any, S: Any, A: Any, B: Any, w: Any, u: Any, v: Any) -> None:
    torch.outer(u, v, out=S)
    torch.addmm(S, A * w, B.T, out=S)


def _cost_volume(torch: Any, V: Any, X: Any, Y: Any) -> None:
    torch.bmm(X.mT, Y, out=V)


def _weighted_product(torch: Any, C: Any, A: Any, B: Any, w: Any, beta: float) -> None:
    torch.addmm(C, A * w, B.T, beta=beta, out=C)


def _resized(prefix: str, sizes: Mapping[str, Mapping[str, int]]) -> dict[str, Workload]:
    """Return programs with sizes of their own, their names behind a prefix."""
    known = workloads()
    return {f"{prefix}-{name}": replace(known[name], sizes=own) for name, own in sizes.items()}


def unseen() -> dict[str, Workload]:
    """Return shapes that nobody looked at while the code was made: chosen when it was done."""
    known = workloads()
    layer = {"NN": 8, "NK": 96, "NC": 64, "NY": 40, "NX": 40, "NR": 3, "NS": 3}
    return {
        "unseen-gemm": replace(known["gemm"], sizes={"NI": 2900, "NJ": 1700, "NK": 1100}),
        "unseen-syrk": replace(known["syrk"], sizes={"NI": 1900, "NJ": 2100}),
        "unseen-syr2k": replace(known["syr2k"], sizes={"NI": 2150, "NJ": 1333}),
        "unseen-2mm": replace(known["2mm"], sizes={"NI": 1500, "NJ": 1900, "NK": 1100, "NL": 1700}),
        "unseen-trmm": trmm_of(3100),
        "unseen-product-tt": replace(
            known["product-tt"], sizes={"NI": 2000, "NJ": 2600, "NK": 1400}
        ),
        "unseen-mttkrp": replace(
            known["mttkrp"], sizes={"NI": 300, "NJ": 400, "NK": 500, "NR": 96}
        ),
        "unseen-convolution-layer": replace(known["convolution-layer"], sizes=layer),
        "unseen-contraction-two": contraction_over_two(40),
    }


def unseen_later() -> dict[str, Workload]:
    """Return further shapes, chosen when fusion and boxes in another order were done."""
    layer = {"NN": 12, "NK": 160, "NC": 96, "NY": 28, "NX": 44, "NR": 3, "NS": 3}
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2200, "NJ": 3100, "NK": 1500},
        "symm": {"NI": 2800, "NJ": 1900},
        "syr2k": {"NI": 1750, "NJ": 2050},
        "3mm": {"NI": 1300, "NJ": 2100, "NK": 900, "NL": 1700, "NM": 1500},
        "product-tt": {"NI": 3300, "NJ": 1700, "NK": 2100},
        "covariance": {"N": 3000, "M": 2200},
        "convolution-layer": layer,
    }
    found = _resized("later", sizes)
    rows = replace(reductions()["softmax"], sizes={"NI": 9000, "NJ": 3000})
    return {**found, "later-softmax": rows}


def unseen_last() -> dict[str, Workload]:
    """Return further shapes, chosen when operands were loaded ahead and lanes interleaved."""
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 3600, "NJ": 1250, "NK": 2750},
        "syrk": {"NI": 2300, "NJ": 1450},
        "syr2k": {"NI": 1650, "NJ": 2400},
        "symm": {"NI": 2100, "NJ": 2500},
        "2mm": {"NI": 1400, "NJ": 2300, "NK": 1700, "NL": 1100},
        "product-tt": {"NI": 2450, "NJ": 2750, "NK": 1950},
    }
    found = _resized("last", sizes)
    return {**found, "last-trmm": trmm_of(2700), "last-contraction-two": contraction_over_two(44)}


def unseen_edges() -> dict[str, Workload]:
    """Return further shapes, chosen when tiles at edges were as fast as others."""
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 3100, "NJ": 1900, "NK": 2300},
        "syrk": {"NI": 1800, "NJ": 2600},
        "syr2k": {"NI": 2050, "NJ": 1500},
        "symm": {"NI": 2300, "NJ": 1700},
        "2mm": {"NI": 1600, "NJ": 1300, "NK": 1900, "NL": 2100},
        "product-tt": {"NI": 2150, "NJ": 3050, "NK": 1450},
    }
    found = _resized("edges", sizes)
    further = {"edges-trmm": trmm_of(2200), "edges-contraction-two": contraction_over_two(40)}
    return {**found, **further}


def unseen_parts() -> dict[str, Workload]:
    """Return further shapes, chosen when steps ran in parts and threads had twelve points."""
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2700, "NJ": 3300, "NK": 1250},
        "syrk": {"NI": 2450, "NJ": 1150},
        "syr2k": {"NI": 1650, "NJ": 1900},
        "symm": {"NI": 1900, "NJ": 2600},
        "2mm": {"NI": 1750, "NJ": 2250, "NK": 1150, "NL": 1550},
        "product-tt": {"NI": 2550, "NJ": 1650, "NK": 3350},
        "mttkrp": {"NI": 350, "NJ": 450, "NK": 400, "NR": 64},
    }
    return {**_resized("parts", sizes), "parts-trmm": trmm_of(2900)}


def unseen_shares() -> dict[str, Workload]:
    """Return further shapes, chosen when copies stood in shares and boxes shared memory.

    Two are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 3050, "NJ": 2250, "NK": 1850},
        "syrk": {"NI": 2150, "NJ": 1950},
        "symm": {"NI": 2650, "NJ": 2350},
        "2mm": {"NI": 2050, "NJ": 1450, "NK": 1650, "NL": 1250},
        "product-tt": {"NI": 1850, "NJ": 2950, "NK": 2450},
    }
    gram = Workload(
        source=PROGRAMS / "gram-batches.c",
        sizes={"NB": 60, "N": 520, "K": 740},
        shapes={"G": ("NB", "N", "N"), "X": ("NB", "K", "N")},
        result="G",
        call=_gram_batches,
    )
    weighted = Workload(
        source=PROGRAMS / "weighted-product.c",
        sizes={"NI": 2350, "NJ": 1750, "NK": 2050},
        shapes={"C": ("NI", "NJ"), "A": ("NI", "NK"), "B": ("NJ", "NK"), "w": ("NK",)},
        result="C",
        call=_weighted_product,
        scalars={"beta": 0.5},
    )
    further = {"shares-gram-batches": gram, "shares-weighted-product": weighted}
    return {**_resized("shares", sizes), **further, "shares-trmm": trmm_of(2550)}


def unseen_streams() -> dict[str, Workload]:
    """Return further shapes, chosen when blocks took equal shares of steps.

    Two are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2780, "NJ": 1930, "NK": 2410},
        "syrk": {"NI": 1730, "NJ": 2210},
        "syr2k": {"NI": 1990, "NJ": 1470},
        "symm": {"NI": 1870, "NJ": 2120},
        "2mm": {"NI": 1390, "NJ": 2480, "NK": 1120, "NL": 1840},
        "product-tt": {"NI": 2310, "NJ": 1670, "NK": 2090},
    }
    distances = Workload(
        source=PROGRAMS / "squared-distances.c",
        sizes={"NI": 1620, "NJ": 2260, "NK": 1340},
        shapes={
            "D": ("NI", "NJ"),
            "X": ("NI", "NK"),
            "Y": ("NJ", "NK"),
            "n": ("NI",),
            "m": ("NJ",),
        },
        result="D",
        call=_squared_distances,
    )
    scores = Workload(
        source=PROGRAMS / "scores.c",
        sizes={"NH": 24, "NI": 1160, "NJ": 940, "ND": 96},
        shapes={
            "S": ("NH", "NI", "NJ"),
            "Q": ("NH", "NI", "ND"),
            "K": ("NH", "NJ", "ND"),
            "b": ("NH", "NJ"),
        },
        result="S",
        call=_scores,
        scalars={"scale": 0.125},
    )
    further = {"streams-squared-distances": distances, "streams-scores": scores}
    return {**_resized("streams", sizes), **further, "streams-trmm": trmm_of(2140)}


def unseen_bound() -> dict[str, Workload]:
    """Return further shapes, chosen when registers were bound by what sums leave.

    Two are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2470, "NJ": 2890, "NK": 1530},
        "syrk": {"NI": 2080, "NJ": 1690},
        "syr2k": {"NI": 1740, "NJ": 1860},
        "symm": {"NI": 2240, "NJ": 1610},
        "3mm": {"NI": 1430, "NJ": 1870, "NK": 1290, "NL": 2050, "NM": 1160},
        "product-tt": {"NI": 2750, "NJ": 1950, "NK": 1550},
    }
    update = Workload(
        source=PROGRAMS / "trailing-update.c",
        sizes={"NI": 2330, "NJ": 1790, "NK": 1610},
        shapes={"C": ("NI", "NJ"), "A": ("NI", "NK"), "B": ("NK", "NJ")},
        result="C",
        call=_trailing_update,
    )
    volume = Workload(
        source=PROGRAMS / "cost-volume.c",
        sizes={"NN": 12, "NC": 160, "NI": 1240, "NJ": 1060},
        shapes={"V": ("NN", "NI", "NJ"), "X": ("NN", "NC", "NI"), "Y": ("NN", "NC", "NJ")},
        result="V",
        call=_cost_volume,
    )
    other_symm = replace(workloads()["symm"], sizes={"NI": 1570, "NJ": 2390})
    return {
        **_resized("bound", sizes),
        "bound-symm-wide": other_symm,
        "bound-trmm": trmm_of(2380),
        "bound-trailing-update": update,
        "bound-cost-volume": volume,
    }


def unseen_terms() -> dict[str, Workload]:
    """Return further shapes, chosen when statements could add and subtract several products.

    Three are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2130, "NJ": 1970, "NK": 2690},
        "syrk": {"NI": 2270, "NJ": 1830},
        "syr2k": {"NI": 1610, "NJ": 2050},
        "symm": {"NI": 1730, "NJ": 1950},
        "2mm": {"NI": 1540, "NJ": 2210, "NK": 1370, "NL": 1690},
        "product-tt": {"NI": 1890, "NJ": 2370, "NK": 2150},
    }
    parts = ("Cr", "Ci"), ("Ar", "Ai"), ("Br", "Bi")
    along = ("NI", "NJ"), ("NI", "NK"), ("NK", "NJ")
    complex_product = Workload(
        source=PROGRAMS / "complex-product.c",
        sizes={"NI": 1310, "NJ": 1670, "NK": 1430},
        shapes={one: own for names, own in zip(parts, along, strict=True) for one in names},
        result="Ci",
        call=_complex_product,
    )
    scatter = Workload(
        source=PROGRAMS / "scatter-matrix.c",
        sizes={"NI": 1750, "NK": 2350},
        shapes={"S": ("NI", "NI"), "X": ("NK", "NI"), "m": ("NI",)},
        result="S",
        call=_scatter_matrix,
    )
    values = Workload(
        source=PROGRAMS / "mixed-values.c",
        sizes={"NH": 20, "NI": 1130, "NJ": 970, "ND": 80},
        shapes={"O": ("NH", "NI", "ND"), "P": ("NH", "NI", "NJ"), "V": ("NH", "NJ", "ND")},
        result="O",
        call=_mixed_values,
    )
    return {
        **_resized("terms", sizes),
        "terms-trmm": trmm_of(2540),
        "terms-complex-product": complex_product,
        "terms-scatter-matrix": scatter,
        "terms-mixed-values": values,
    }


def unseen_factors() -> dict[str, Workload]:
    """Return further shapes, chosen when factors could be differences at edges, too.

    Two are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 3210, "NJ": 1490, "NK": 1870},
        "syrk": {"NI": 1660, "NJ": 2420},
        "syr2k": {"NI": 2090, "NJ": 1310},
        "symm": {"NI": 2010, "NJ": 1780},
        "3mm": {"NI": 1270, "NJ": 1690, "NK": 2030, "NL": 1450, "NM": 1110},
        "product-tt": {"NI": 2210, "NJ": 1810, "NK": 2610},
    }
    layer = Workload(
        source=PROGRAMS / "dense-layer.c",
        sizes={"NN": 2650, "NO": 1370, "NI": 1810},
        shapes={"Y": ("NN", "NO"), "X": ("NN", "NI"), "W": ("NO", "NI"), "b": ("NO",)},
        result="Y",
        call=_dense_layer,
    )
    congruence = Workload(
        source=PROGRAMS / "congruence.c",
        sizes={"NI": 1930, "NJ": 1410},
        shapes={"M": ("NJ", "NJ"), "T": ("NI", "NJ"), "W": ("NI", "NI"), "A": ("NI", "NJ")},
        result="M",
        call=_congruence,
    )
    return {
        **_resized("factors", sizes),
        "factors-trmm": trmm_of(2260),
        "factors-dense-layer": layer,
        "factors-congruence": congruence,
    }


def unseen_signs() -> dict[str, Workload]:
    """Return further shapes, chosen when sums could begin with any value.

    Two are programs of their own.
    """
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2330, "NJ": 2610, "NK": 1230},
        "syrk": {"NI": 2370, "NJ": 1510},
        "syr2k": {"NI": 1570, "NJ": 2290},
        "symm": {"NI": 2170, "NJ": 1490},
        "2mm": {"NI": 1870, "NJ": 1330, "NK": 2090, "NL": 1450},
        "product-tt": {"NI": 2090, "NJ": 2510, "NK": 1310},
    }
    projection = Workload(
        source=PROGRAMS / "embedded-projection.c",
        sizes={"NB": 14, "NI": 370, "NJ": 530, "NK": 610},
        shapes={
            "Y": ("NB", "NI", "NJ"),
            "X": ("NB", "NI", "NK"),
            "P": ("NI", "NK"),
            "W": ("NK", "NJ"),
        },
        result="Y",
        call=_embedded_projection,
    )
    scores = Workload(
        source=PROGRAMS / "weighted-scores.c",
        sizes={"NI": 1850, "NJ": 2270, "NK": 1430},
        shapes={
            "S": ("NI", "NJ"),
            "A": ("NI", "NK"),
            "B": ("NJ", "NK"),
            "w": ("NK",),
            "u": ("NI",),
            "v": ("NJ",),
        },
        result="S",
        call=_weighted_scores,
    )
    return {
        **_resized("signs", sizes),
        "signs-trmm": trmm_of(1990),
        "signs-embedded-projection": projection,
        "signs-weighted-scores": scores,
    }


def every_workload() -> dict[str, Workload]:
    """Return all of them by name."""
    chosen_when_done = unseen() | unseen_later() | unseen_last() | unseen_edges()
    chosen_when_done |= unseen_parts() | unseen_shares() | unseen_streams() | unseen_bound()
    chosen_when_done |= unseen_terms() | unseen_factors() | unseen_signs()
    return workloads() | other_shapes() | reductions() | half_products() | chosen_when_done
