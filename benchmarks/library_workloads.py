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

    ``shapes`` are of its arrays, by names of sizes. ``call`` gets the arrays, PyTorch among them
    as ``torch``, and writes the result into the array called ``result``. ``scales`` are the largest
    values of arrays, 1 where it says nothing: what is computed in place again and again stays
    finite. Arrays that are ``restored`` get their first values before each run, on both sides.
    ``floats`` are arrays of floats where the others are of halves.
    """

    source: Path
    sizes: Mapping[str, int]
    shapes: Mapping[str, tuple[str, ...]]
    result: str
    call: Callable[..., None]
    scalars: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    restored: tuple[str, ...] = ()
    floats: tuple[str, ...] = ()


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


_FACTORS = {"alpha": 0.75, "beta": 0.5}


def _square(source: str, shapes: Mapping[str, tuple[str, ...]], result: str, call: Any) -> Any:
    names = sorted({name for shape in shapes.values() for name in shape})

    def at(size: int, *, scalars: bool = True) -> Workload:
        return Workload(
            source=data_directory("kernels") / f"{source}.c",
            sizes=dict.fromkeys(names, size),
            shapes=shapes,
            result=result,
            call=call,
            scalars=_FACTORS if scalars else {},
        )

    return at


_GEMM = _square("gemm", {"C": ("NI", "NJ"), "A": ("NI", "NK"), "B": ("NK", "NJ")}, "C", _gemm)
_SYRK = _square("syrk", {"C": ("NI", "NI"), "A": ("NI", "NJ")}, "C", _syrk)
_SYR2K = _square("syr2k", {"C": ("NI", "NI"), "A": ("NI", "NJ"), "B": ("NI", "NJ")}, "C", _syr2k)


_2MM = _square(
    "2mm",
    {
        "tmp": ("NI", "NJ"),
        "A": ("NI", "NK"),
        "B": ("NK", "NJ"),
        "C": ("NJ", "NL"),
        "D": ("NI", "NL"),
    },
    "D",
    _2mm,
)


def trmm_of(size: int) -> Workload:
    """Return a triangular product of so many rows and columns."""
    return Workload(
        source=data_directory("kernels") / "trmm.c",
        sizes={"NI": size},
        shapes={"A": ("NI", "NI"), "B": ("NI", "NI")},
        result="B",
        call=_trmm,
        scalars={"alpha": 1.0},
        scales={"A": 2.0 / size},
    )


def contraction_over_two(size: int) -> Workload:
    """Return a contraction of two tensors over two indices, all of one size."""
    return Workload(
        source=PROGRAMS / "contraction-two.c",
        sizes=dict.fromkeys(("NA", "NB", "NC", "ND", "NE", "NF"), size),
        shapes={
            "C": ("NA", "NB", "NC", "ND"),
            "A": ("NA", "NB", "NE", "NF"),
            "B": ("NE", "NF", "NC", "ND"),
        },
        result="C",
        call=_contraction_two,
    )


def workloads() -> dict[str, Workload]:
    """Return those of the table by name."""
    return {
        "gemm": _GEMM(4000),
        "gemm-1111": _GEMM(1111),
        "gemm-8191": _GEMM(8191),
        "2mm": _2MM(4000),
        "3mm": _square(
            "3mm",
            {
                "E": ("NI", "NJ"),
                "A": ("NI", "NK"),
                "B": ("NK", "NJ"),
                "F": ("NJ", "NL"),
                "C": ("NJ", "NM"),
                "D": ("NM", "NL"),
                "G": ("NI", "NL"),
            },
            "G",
            _3mm,
        )(4000, scalars=False),
        "syrk": _SYRK(4000),
        "syr2k": _SYR2K(4000),
        "product-tt": Workload(
            source=PROGRAMS / "product-tt.c",
            sizes={"NI": 3000, "NJ": 3000, "NK": 3000},
            shapes={"C": ("NI", "NJ"), "A": ("NK", "NI"), "B": ("NJ", "NK")},
            result="C",
            call=_product_tt,
        ),
        "batched-product": Workload(
            source=PROGRAMS / "batched-product.c",
            sizes={"NB": 20000, "N": 32},
            shapes={"C": ("NB", "N", "N"), "A": ("NB", "N", "N"), "B": ("NB", "N", "N")},
            result="C",
            call=_batched,
        ),
        "tall-product": Workload(
            source=PROGRAMS / "tall-product.c",
            sizes={"NI": 1000000, "NJ": 32, "NK": 32},
            shapes={"C": ("NI", "NJ"), "A": ("NI", "NK"), "B": ("NK", "NJ")},
            result="C",
            call=_tall,
        ),
        "doitgen": Workload(
            source=data_directory("kernels") / "doitgen.c",
            sizes={"NR": 512, "NQ": 512, "NP": 128},
            shapes={"A": ("NR", "NQ", "NP"), "C4": ("NP", "NP"), "sum": ("NR", "NQ", "NP")},
            result="sum",
            call=_doitgen,
        ),
        "mttkrp": Workload(
            source=data_directory("kernels") / "mttkrp.c",
            sizes={"NI": 512, "NJ": 512, "NK": 512, "NR": 64},
            shapes={
                "A": ("NI", "NR"),
                "T": ("NI", "NJ", "NK"),
                "B": ("NJ", "NR"),
                "C": ("NK", "NR"),
            },
            result="A",
            call=_mttkrp,
        ),
        "convolution-layer": Workload(
            source=PROGRAMS / "convolution-layer.c",
            sizes={"NN": 16, "NK": 128, "NC": 128, "NY": 56, "NX": 56, "NR": 3, "NS": 3},
            shapes={
                "out": ("NN", "NK", "NY", "NX"),
                "in": ("NN", "NC", "NY + NR - 1", "NX + NS - 1"),
                "w": ("NK", "NC", "NR", "NS"),
            },
            result="out",
            call=_convolution,
        ),
        "contraction": Workload(
            source=PROGRAMS / "contraction.c",
            sizes=dict.fromkeys(("NA", "NB", "NC", "ND", "NE"), 96),
            shapes={
                "C": ("NA", "NB", "NC", "ND"),
                "A": ("NA", "NE", "NB"),
                "B": ("NE", "NC", "ND"),
            },
            result="C",
            call=_contraction,
        ),
        "contraction-two": contraction_over_two(48),
        "trmm": trmm_of(4000),
        "symm": _square(
            "symm",
            {"C": ("NI", "NJ"), "A": ("NI", "NI"), "B": ("NI", "NJ"), "acc": ("NI", "NJ")},
            "C",
            _symm,
        )(4000),
        "covariance": _square(
            "covariance",
            {"data": ("N", "M"), "symmat": ("M", "M"), "mean": ("M",)},
            "symmat",
            _covariance,
        )(4000, scalars=False),
        "correlation": replace(
            _square(
                "correlation",
                {"data": ("N", "M"), "symmat": ("M", "M"), "mean": ("M",), "stddev": ("M",)},
                "symmat",
                _correlation,
            )(4000, scalars=False),
            restored=("data",),
        ),
    }


def other_shapes() -> dict[str, Workload]:
    """Return further shapes: oblong ones, and sizes that fit no tile."""
    return {
        "gemm-oblong": replace(_GEMM(1), sizes={"NI": 3300, "NJ": 780, "NK": 2222}),
        "syrk-oblong": replace(_SYRK(1), sizes={"NI": 2600, "NJ": 1250}),
        "syr2k-oblong": replace(_SYR2K(1), sizes={"NI": 1555, "NJ": 901}),
        "contraction-two-37": contraction_over_two(37),
        "trmm-2345": trmm_of(2345),
        "2mm-oblong": replace(_2MM(1), sizes={"NI": 1800, "NJ": 2100, "NK": 1234, "NL": 999}),
    }


def reductions() -> dict[str, Workload]:
    """Return programs that reduce rows, and multiply nothing."""
    return {
        "softmax": Workload(
            source=PROGRAMS / "softmax.c",
            sizes={"NI": 20000, "NJ": 2000},
            shapes={"in": ("NI", "NJ"), "out": ("NI", "NJ"), "most": ("NI",), "sum": ("NI",)},
            result="out",
            call=_softmax,
        )
    }


def half_products() -> dict[str, Workload]:
    """Return products of halves that are added up in floats, for ``--dtypes half``.

    PyTorch gets halves too, and does not add up in halves. Where it cannot give floats, it rounds
    its sums to halves, and its time has their conversion.
    """
    product = Workload(
        source=PROGRAMS / "halves" / "product.c",
        sizes=dict.fromkeys(("NI", "NJ", "NK"), 4096),
        shapes={"C": ("NI", "NJ"), "A": ("NI", "NK"), "B": ("NK", "NJ")},
        result="C",
        call=_product_of_halves,
        floats=("C",),
    )
    odd = replace(product, sizes=dict.fromkeys(product.sizes, 1111))
    return {"half-product": product, "half-product-1111": odd}
