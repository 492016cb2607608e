"""What ``import eatss`` costs and offers."""

from __future__ import annotations

import subprocess
import sys

import pytest

import eatss

HEAVY = ("z3", "islpy", "clang", "numpy", "networkx", "pydantic", "rich", "click")


def _modules_after(code: str) -> set[str]:
    script = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_eatss_loads_no_solver_and_no_compiler() -> None:
    assert _modules_after("import eatss").isdisjoint(HEAVY)


def test_selecting_loads_neither_cupy_nor_nvml() -> None:
    code = """
import eatss
source = '''
void f(double a[100][100]) {
#pragma scop
  for (int i = 0; i < 100; i++)
    for (int j = 0; j < 100; j++)
      a[i][j] = 2 * a[i][j];
#pragma endscop
}
'''
assert eatss.select(source, gpu="h200").kernels
"""
    assert _modules_after(code).isdisjoint({"cupy", "pynvml"})


@pytest.mark.parametrize("name", eatss.__all__)
def test_every_public_name_exists(name: str) -> None:
    assert getattr(eatss, name) is not None
    assert name in dir(eatss)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'selekt'"):
        eatss.selekt  # noqa: B018
