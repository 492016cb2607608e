"""What becomes of compilers, and of the worker, when a measurement is ended from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.base.test_guard import ROOT, gone, soon, written
from tests.measurement.scripted_card import Folders

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's word"),
    pytest.mark.usefixtures("heeded_signals"),
]

CARD = "tests.measurement.compiling_card:CompilingCard"


def test_a_hung_compiler_ends_with_the_measurement(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    variant = folders.variant("a")
    file = tmp_path / "pids"
    compiler = tmp_path / "nvcc"
    compiler.write_text(f"#!/bin/sh\necho $PPID $$ > {file}\nexec sleep 60\n")
    compiler.chmod(0o755)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "SCRIPTED_CARD": str(folders.card()),
        "FAKE_COMPILER": str(compiler),
    }
    program = "from eatss.cli import main; main()"
    command = [sys.executable, "-c", program, "measure", str(variant.directory), "--card", CARD]
    with subprocess.Popen(command, env=environment) as process:
        assert soon(lambda: written(file))
        begin_s = time.monotonic()
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 130
    assert time.monotonic() - begin_s < 4
    assert soon(lambda: all(gone(pid) for pid in written(file)))
