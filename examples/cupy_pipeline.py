"""Principal components with CuPy around a C kernel: covariance by eatss, everything else by CuPy.

    python examples/cupy_pipeline.py                      # on the card
    python examples/cupy_pipeline.py --device cpu -n 60   # on NumPy's arrays, without a card

The arrays stay where they are: eatss launches on CuPy's current stream, and nothing is copied.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import eatss

KERNEL = Path(__file__).parents[1] / "kernels" / "covariance.c"

covariance = eatss.jit(KERNEL)


def components(xp: Any, samples: Any, count: int) -> tuple[Any, Any]:
    """Return the strongest directions of data, and the share of the variance along each.

    Args:
        xp: the module CuPy, or NumPy.
        samples: one sample a row, float64.
        count: how many directions.
    """
    features = samples.shape[1]
    scaled = samples / samples.std(axis=0)
    matrix = xp.empty((features, features))
    means = xp.empty(features)
    # sizes follow from the shapes; 'data' is centred in place, as the C does it
    covariance(data=scaled, symmat=matrix, mean=means)
    values, vectors = xp.linalg.eigh(matrix)
    return vectors[:, ::-1][:, :count], values[::-1][:count] / values.sum()


def main() -> int:
    """Run on random data with a known strong direction, and compare with the library."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("-n", "--size", type=int, default=2000)
    given = parser.parse_args()
    if given.device == "gpu":
        import cupy as xp  # noqa: PLC0415 - the CPU needs none
    else:
        import numpy as xp  # noqa: PLC0415
    rng = xp.random.default_rng(7)
    features = given.size // 2
    samples = rng.standard_normal((given.size, features))
    samples += 3 * rng.standard_normal((given.size, 1)) * xp.linspace(0, 1, features)
    directions, shares = components(xp, samples, 3)
    expected = xp.linalg.eigvalsh(xp.corrcoef(samples, rowvar=False))[::-1]
    worst = float(abs(shares - expected[:3] / expected.sum()).max())
    print("share of the variance:", ", ".join(f"{float(one):.3f}" for one in shares))
    print(f"beside {xp.__name__}.corrcoef: largest difference {worst:.1e}")
    return 0 if worst < 1e-9 and directions.shape == (features, 3) else 1


if __name__ == "__main__":
    raise SystemExit(main())
