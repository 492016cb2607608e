"""Programs that a vendor's library can do as well: their sizes, and what is called instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eatss.base.shipped import data_directory

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A program, its sizes, and what the library does instead.

    ``call`` gets the program's arguments, PyTorch among them as ``torch``, and writes the result
    into the array called ``result``. ``scales`` are the largest values of arrays, 1 where it says
    nothing: what is computed in place again and again stays finite. Arrays that are ``restored``
    get their first values before each run, on both sides.
    """

    source: Path
    sizes: Mapping[str, int]
    result: str
    call: Callable[..., None]
    scalars: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    restored: tuple[str, ...] = ()


def _gemm(torch: Any, C: Any, A: Any, B: Any, alpha: float, beta: float) -> None:
    torch.addmm(C, A, B, alpha=alpha, beta=beta, out=C)


def _2mm(torch: Any, tmp: Any, D: Any, A: Any, B: Any, C: Any, alpha: float, beta: float) -> None:
    torch.mm(A, B, out=tmp)
    torch.addmm(D, tmp, C, alpha=alpha, beta=beta, out=D)


def _3mm(torch: Any, E: Any, A: Any, B: Any, F: Any, C: Any, D: Any, G: Any) -> None:
    torch.mm(A, B, out=E)
    torch.mm(C, D, out=F)
    torch.mm(E, F, out=G)


def _syrk(torch: Any, C: Any, A: Any, alpha: float, beta: float) -> None:
    torch.addmm(C, A, A.T, alpha=alpha, beta=beta, out=C)


def _syr2k(torch: Any, C: Any, A: Any, B: Any, alpha: float, beta: float) -> None:
    torch.addmm(C, A, B.T, alpha=alpha, beta=beta, out=C)
    torch.addmm(C, B, A.T, alpha=alpha, out=C)


def _product_tt(torch: Any, C: Any, A: Any, B: Any) -> None:
    torch.addmm(C, A.T, B.T, out=C)


def _batched(torch: Any, C: Any, A: Any, B: Any) -> None:
    torch.bmm(A, B, out=C)


def _tall(torch: Any, C: Any, A: Any, B: Any) -> None:
    torch.mm(A, B, out=C)


def _doitgen(torch: Any, A: Any, C4: Any, sum: Any) -> None:  # noqa: A002 - its name in the program
    torch.matmul(A, C4, out=sum)
    A.copy_(sum)


def _mttkrp(torch: Any, A: Any, T: Any, B: Any, C: Any) -> None:
    rows, columns = B.shape[0] * C.shape[0], B.shape[1]
    both = (B[:, None, :] * C[None, :, :]).reshape(rows, columns)
    torch.addmm(A, T.reshape(T.shape[0], rows), both, out=A)


def _convolution(torch: Any, out: Any, w: Any, **arrays: Any) -> None:
    out += torch.nn.functional.conv2d(arrays["in"], w)


def _contraction(torch: Any, C: Any, A: Any, B: Any) -> None:
    C += torch.einsum("aeb,ecd->abcd", A, B)


def _contraction_two(torch: Any, C: Any, A: Any, B: Any) -> None:
    C += torch.einsum("abef,efcd->abcd", A, B)


def _softmax(torch: Any, out: Any, most: Any, sum: Any, **arrays: Any) -> None:  # noqa: A002
    torch.softmax(arrays["in"], 1, out=out)


def _trmm(torch: Any, A: Any, B: Any, alpha: float) -> None:
    unit = torch.tril(A, -1).T
    unit.diagonal().fill_(1.0)
    B.copy_(torch.mm(unit, B).mul_(alpha))


def _symm(torch: Any, C: Any, A: Any, B: Any, acc: Any, alpha: float, beta: float) -> None:
    whole = torch.tril(A) + torch.tril(A, -1).T
    torch.addmm(C, whole, B, alpha=alpha, beta=beta, out=C)


def _covariance(torch: Any, data: Any, symmat: Any, mean: Any) -> None:
    torch.mean(data, 0, out=mean)
    data -= mean
    torch.mm(data.T, data, out=symmat)
    symmat /= data.shape[0] - 1


def _correlation(torch: Any, data: Any, symmat: Any, mean: Any, stddev: Any) -> None:
    torch.mean(data, 0, out=mean)
    data -= mean
    torch.linalg.vector_norm(data, dim=0, out=stddev)
    stddev /= data.shape[0] ** 0.5
    stddev.masked_fill_(stddev <= 0.1, 1.0)
    data /= stddev * data.shape[0] ** 0.5
    torch.mm(data.T, data, out=symmat)
    symmat.fill_diagonal_(1.0)


def _product_of_halves(torch: Any, C: Any, A: Any, B: Any) -> None:
    """Sums are floats in cuBLAS; PyTorch before 2.8 returns them in halves only."""
    try:
        torch.mm(A, B, out_dtype=torch.float32, out=C)
    except TypeError:
        C.copy_(torch.mm(A, B))


def _embedded_projection(torch: Any, Y: Any, X: Any, P: Any, W: Any) -> None:
    torch.matmul(X + P, W, out=Y)


def _weighted_scores(torch: Any, S: Any, A: Any, B: Any, w: Any, u: Any, v: Any) -> None:
    torch.outer(u, v, out=S)
    torch.addmm(S, A * w, B.T, out=S)


_FACTORS = {"alpha": 0.75, "beta": 0.5}


def _kernel(name: str, sizes: str, size: int, result: str, call: Any, **more: Any) -> Workload:
    """Return a kernel of the repository, all of its sizes alike."""
    return Workload(
        source=data_directory("kernels") / f"{name}.c",
        sizes=dict.fromkeys(sizes.split(), size),
        result=result,
        call=call,
        **more,
    )


def _program(name: str, result: str, call: Any, **sizes: int) -> Workload:
    """Return a program of this folder."""
    return Workload(source=PROGRAMS / f"{name}.c", sizes=sizes, result=result, call=call)


def _alike(indices: str, size: int) -> dict[str, int]:
    return {f"N{index}": size for index in indices}


def _trmm_of(size: int) -> Workload:
    scales = {"A": 2.0 / size}
    return _kernel("trmm", "NI", size, "B", _trmm, scalars={"alpha": 1.0}, scales=scales)


def workloads() -> dict[str, Workload]:
    """Return those of the table by name."""
    gemm = _kernel("gemm", "NI NJ NK", 4000, "C", _gemm, scalars=_FACTORS)
    layer = {"NN": 16, "NK": 128, "NC": 128, "NY": 56, "NX": 56, "NR": 3, "NS": 3}
    doitgen = _kernel("doitgen", "NR NQ", 512, "sum", _doitgen)
    mttkrp = _kernel("mttkrp", "NI NJ NK", 512, "A", _mttkrp)
    return {
        "gemm": gemm,
        **{f"gemm-{n}": replace(gemm, sizes=dict.fromkeys(gemm.sizes, n)) for n in (1111, 8191)},
        "2mm": _kernel("2mm", "NI NJ NK NL", 4000, "D", _2mm, scalars=_FACTORS),
        "3mm": _kernel("3mm", "NI NJ NK NL NM", 4000, "G", _3mm),
        "syrk": _kernel("syrk", "NI NJ", 4000, "C", _syrk, scalars=_FACTORS),
        "syr2k": _kernel("syr2k", "NI NJ", 4000, "C", _syr2k, scalars=_FACTORS),
        "product-tt": _program("product-tt", "C", _product_tt, NI=3000, NJ=3000, NK=3000),
        "batched-product": _program("batched-product", "C", _batched, NB=20000, N=32),
        "tall-product": _program("tall-product", "C", _tall, NI=1000000, NJ=32, NK=32),
        "doitgen": replace(doitgen, sizes={**doitgen.sizes, "NP": 128}),
        "mttkrp": replace(mttkrp, sizes={**mttkrp.sizes, "NR": 64}),
        "convolution-layer": _program("convolution-layer", "out", _convolution, **layer),
        "contraction": _program(
            "contraction", "C", _contraction, NA=96, NB=96, NC=96, ND=96, NE=96
        ),
        "contraction-two": _program(
            "contraction-two", "C", _contraction_two, NA=48, NB=48, NC=48, ND=48, NE=48, NF=48
        ),
        "trmm": _trmm_of(4000),
        "symm": _kernel("symm", "NI NJ", 4000, "C", _symm, scalars=_FACTORS),
        "covariance": _kernel("covariance", "N M", 4000, "symmat", _covariance),
        "correlation": _kernel(
            "correlation", "N M", 4000, "symmat", _correlation, restored=("data",)
        ),
        "softmax": _program("softmax", "out", _softmax, NI=20000, NJ=2000),
    }


def half_products() -> dict[str, Workload]:
    """Return products of halves that are added up in floats, for ``--dtypes half``.

    PyTorch gets halves too, and does not add up in halves. Where it cannot give floats, it rounds
    its sums to halves, and its time has their conversion.
    """
    product = _program("halves/product", "C", _product_of_halves, NI=4096, NJ=4096, NK=4096)
    odd = replace(product, sizes=dict.fromkeys(product.sizes, 1111))
    return {"half-product": product, "half-product-1111": odd}


def unseen() -> dict[str, Workload]:
    """Return shapes that nobody looked at before the code was done, and two further programs."""
    known = workloads()
    sizes: dict[str, dict[str, int]] = {
        "gemm": {"NI": 2330, "NJ": 2610, "NK": 1230},
        "syrk": {"NI": 2370, "NJ": 1510},
        "syr2k": {"NI": 1570, "NJ": 2290},
        "symm": {"NI": 2170, "NJ": 1490},
        "2mm": {"NI": 1870, "NJ": 1330, "NK": 2090, "NL": 1450},
        "product-tt": {"NI": 2090, "NJ": 2510, "NK": 1310},
    }
    return {
        **{f"signs-{name}": replace(known[name], sizes=own) for name, own in sizes.items()},
        "signs-trmm": _trmm_of(1990),
        "signs-embedded-projection": _program(
            "embedded-projection", "Y", _embedded_projection, NB=14, NI=370, NJ=530, NK=610
        ),
        "signs-weighted-scores": _program(
            "weighted-scores", "S", _weighted_scores, NI=1850, NJ=2270, NK=1430
        ),
    }
