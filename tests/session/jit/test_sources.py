"""Sources of callables: what is one, what changes, where it lies, what it includes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eatss
from eatss.base.cache import Cache
from tests.session.jit.sources import SCALED, random, refused


def test_a_source_that_has_changed_is_refused_until_it_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "scaled.c"
    path.write_text(SCALED)
    scaled = eatss.jit(path, gpu="h200")
    a, b = random(9), np.empty(9)
    scaled(factor=2, A=a, B=b)
    path.write_text(SCALED.replace("factor * A[i]", "factor + A[i]"))
    scaled(factor=2, A=a, B=b)  # nothing new has to be made
    assert (b == 2 * a).all()
    large, result = random(90), np.empty(90)
    said = refused("J022", lambda: scaled(factor=2, A=large, B=result))
    assert "has changed since it was called first" in str(said)
    scaled.clear()
    scaled(factor=2, A=large, B=result)
    assert (result == 2 + large).all()


def test_another_folder_is_no_other_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scaled.c").write_text(SCALED)
    monkeypatch.chdir(tmp_path)
    scaled = eatss.jit("scaled.c", gpu="h200")
    monkeypatch.chdir("/")
    b = np.empty(4)
    scaled(factor=2, A=np.ones(4), B=b)
    assert (b == 2).all()


def test_a_program_for_a_card_of_ones_own_is_callable() -> None:
    card = replace(eatss.load_profile("h200"), name="mycard")
    b = np.empty(4)
    eatss.codegen(SCALED, gpu=card).compile()(factor=3, A=np.ones(4), B=b, n=4)
    assert (b == 3).all()


def test_what_is_no_source_is_refused_at_once() -> None:
    def loops(n: int) -> None:
        """Have no decorator."""

    said = refused("C004", lambda: eatss.jit(loops))
    assert said.diagnostics[0].hint == "put @eatss.scop before the function"
    refused("C004", lambda: eatss.jit(5))
    refused("C004", lambda: eatss.select(loops, gpu="h200"))  # type: ignore[arg-type]


def test_headers_of_the_environment_are_no_part_of_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "size.h").write_text("#define N 100\n")
    cache = Cache(tmp_path / "cache")
    source = tmp_path / "elsewhere" / "f.c"
    source.parent.mkdir()
    source.write_text(
        '#include "size.h"\nvoid f(double A[N]) {\n#pragma scop\n'
        "    for (int i = 0; i < N; i++)\n        A[i] += 1;\n#pragma endscop\n}\n"
    )
    monkeypatch.setenv("CPATH", str(tmp_path))
    first = eatss.inspect(source)
    assert first.scops
    eatss.select(source, gpu="a100", cache=cache)
    assert not cache.files("select")


def test_a_name_of_a_folder_is_a_folder(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "kept"))  # type: ignore[arg-type]
    cache.put("select", "0" * 64, b"data")
    assert cache.get("select", "0" * 64) == b"data"
