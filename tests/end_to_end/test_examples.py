"""The examples run: on the CPU here, on a card by hand."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.forked_workers import python

pytestmark = pytest.mark.usefixtures("kept")

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples"


def run(name: str, *words: str) -> str:
    done = subprocess.run(
        python(EXAMPLES / name, *words),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_pipeline_of_array_library_and_kernel() -> None:
    said = run("cupy_pipeline.py", "--device", "cpu", "-n", "60")
    assert said.startswith("share of the variance: 0.5")
    assert "largest difference" in said


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")
def test_an_operator_of_pytorch_with_its_gradient() -> None:
    said = run("torch_operator.py", "--device", "cpu", "-n", "24")
    assert said.startswith("largest difference of values and gradients: ")


def test_the_loops_of_the_operator_are_read_without_pytorch() -> None:
    words = ["select", "examples/torch_operator.py", "--gpu", "h200", "--target", "cuda"]
    done = subprocess.run(
        python("-m", "eatss", *words, "--format", "json"),
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=120,
        check=True,
    )
    selection = json.loads(done.stdout)
    (kernel,) = selection["kernels"]
    assert kernel["loops"] == ["i", "j"]


def test_a_service_answers_from_four_threads() -> None:
    said = run("selection_service.py", "--self-test", "24")
    assert said.startswith("24 answers to 8 questions from 4 threads\n50 % within ")


def test_a_service_says_what_is_wrong_with_a_question() -> None:
    with subprocess.Popen(
        python(EXAMPLES / "selection_service.py", "--port", "0"),
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"},
    ) as service:
        try:
            assert service.stdout is not None
            place = service.stdout.readline().split()[-1].partition("?")[0]
            for query, status in (
                ("kernel=gemm&gpu=a100&NI=500", 200),
                ("kernel=gem&gpu=a100", 400),
                ("kernel=gemm&gpu=z9", 400),
            ):
                answer = asked(f"{place}?{query}")
                assert answer[0] == status, answer
        finally:
            service.terminate()
    assert service.returncode is not None


def asked(url: str) -> tuple[int, str]:
    for _ in range(50):
        try:
            with urllib.request.urlopen(url, timeout=60) as found:
                return int(found.status), found.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("nobody answers")
