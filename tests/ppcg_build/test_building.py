from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import eatss
from eatss.ppcg_build.run import PpcgError
from eatss.verify.run import verify
from tests.ppcg_build import cases
from tests.refusals import refusing

pytestmark = pytest.mark.usefixtures("kept")

GEMM = cases.KERNELS / "gemm.c"


def there(folder: Path) -> list[str]:
    """Return the files below a folder, and the folder itself if it is there but empty."""
    if not folder.exists():
        return []
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()) or ["."]


@pytest.mark.parametrize(
    ("name", "selects"),
    [*((name, True) for name in cases.NAMES), ("gemm", False)],
)
def test_what_ppcg_generates_computes_what_the_source_does(
    name: str, selects: bool, recorded: Path, tmp_path: Path
) -> None:
    source, out = cases.KERNELS / f"{name}.c", tmp_path / "out"
    made = cases.build(source, out, recorded, arguments=[cases.SMALL], selects=selects)
    assert made.warnings == ()
    assert made.program == out / f"{name}.eatss"
    found = verify(out, device="cpu")
    assert (found.status, found.bit_equal) == ("ok", True)
    assert found.coverage is not None
    assert found.coverage.elements
    assert found.coverage.idle == ()


def test_a_wrong_kernel_does_not_pass_verification(recorded: Path, tmp_path: Path) -> None:
    made = cases.build(GEMM, tmp_path / "out", recorded, arguments=[cases.SMALL])
    assert made.program is not None
    text = made.program / "gemm.cu"
    text.write_text(text.read_text().replace("*= beta", "*= alpha"))
    assert verify(made.program, device="cpu", first_failure=True).status == "wrong result"


def test_both_runs_have_the_same_options_and_the_last_one_the_sizes(
    recorded: Path, tmp_path: Path
) -> None:
    made = cases.build(GEMM, tmp_path, recorded, arguments=[cases.SMALL])
    assert made.selection is not None
    saving, loading = made.commands
    assert saving[1:-1] == ("--target=cuda", cases.SMALL, "--save-schedule=gemm.schedule")
    assert loading[1:-1] == (
        "--target=cuda", cases.SMALL, "--load-schedule=gemm.schedule",
        *made.selection.ppcg_arguments, "--dump-sizes",
    )  # fmt: skip


def test_several_regions_are_compared_with_the_kernels_that_eatss_expects(
    recorded: Path, tmp_path: Path
) -> None:
    source = cases.written(tmp_path / "c", "several.c", cases.SEVERAL)
    made = cases.build(source, tmp_path / "out", recorded)
    assert not any("--load-schedule" in word for word in made.commands[-1])
    assert len(made.selection.kernels if made.selection else ()) == 2
    assert verify(tmp_path / "out", device="cpu").status == "ok"


def test_kernels_of_ppcg_that_are_for_no_other_size_can_be_verified(
    recorded: Path, tmp_path: Path
) -> None:
    source = cases.written(tmp_path / "c", "rows.c", cases.ROWS)
    made = cases.build(source, tmp_path / "out", recorded, selects=True)
    assert made.warnings == ()
    assert made.program == tmp_path / "out" / "rows.eatss"
    assert verify(tmp_path / "out", device="cpu").status == "ok"


# -- failures ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("echo no such thing >&2; exit 3", "EATSS-R010", "exit code 3"),
        ("kill -SEGV $$", "EATSS-R010", "SIGSEGV"),
        ("exec sleep 60", "EATSS-R010", "did not end within 0.7 s"),
        ("exit 0", "EATSS-R010", "wrote no 'gemm_host.cu'"),
        (
            "for f in host.cu kernel.cu kernel.hu; do echo > gemm_$f; done",
            "EATSS-R014",
            "mapped nothing",
        ),
        ("echo '#include' > gemm_host.cu; echo > gemm_kernel.cu", "EATSS-R010", "gemm_kernel.hu"),
    ],
)
def test_a_ppcg_that_fails_fails_the_build(
    body: str, code: str, said: str, script: Callable[[str], Path], tmp_path: Path
) -> None:
    with pytest.raises(PpcgError) as caught:
        cases.build(GEMM, tmp_path / "out", script(body), ppcg_timeout_s=0.7)
    assert caught.value.code == code
    assert said in caught.value.diagnostics[0].message
    assert caught.value.exit_code == 1
    assert there(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("s/k0_dimBlock([0-9, ]*)/k0_dimBlock(1024)/", "PPCG launches blocks of "),
        ("s/__global__ void kernel0/__global__ void kernel7() {}\\n&/", "PPCG generated 2 kernels"),
        ("s/int t0 = .*/&__shared__ double s[4096];/", "bytes of shared memory"),
    ],
)
def test_code_that_was_not_asked_for_fails_the_build(
    change: str, said: str, script: Callable[[str], Path], recorded: Path, tmp_path: Path
) -> None:
    other = script(f"{recorded} \"$@\" && sed -i '{change}' gemm_*.cu")
    with pytest.raises(PpcgError) as caught:
        cases.build(GEMM, tmp_path / "out", other, arguments=[cases.SMALL])
    assert caught.value.code == "EATSS-R020"
    assert said in caught.value.diagnostics[0].message
    assert there(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("code", "unchecked"),
    [("s/double [*]dev_A;/& surprise();/", "blocks of threads as they are launched")],
)
def test_tiles_are_compared_where_code_is_not_understood(
    code: str, unchecked: str, script: Callable[[str], Path], recorded: Path, tmp_path: Path
) -> None:
    strange = f"sed -i '{code}' gemm_host.cu gemm_kernel.cu"
    other = script(f'{recorded} "$@" && {strange}')
    made = cases.build(GEMM, tmp_path / "whole", other, arguments=[cases.SMALL])
    (warning,) = made.warnings
    assert warning.code == "EATSS-R031"
    assert warning.message.endswith(f"; {unchecked} were not compared with what was asked for")
    other = script(f"{recorded} \"$@\" | sed 's/o0 = 32/o0 = 31/g' && {strange}")
    with pytest.raises(PpcgError) as caught:
        cases.build(GEMM, tmp_path / "out", other, arguments=[cases.SMALL])
    assert caught.value.code == "EATSS-R020"
    assert there(tmp_path / "out") == []


def test_a_program_of_a_build_before_is_not_taken_for_this_one(
    script: Callable[[str], Path], recorded: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert cases.build(GEMM, out, recorded, arguments=[cases.SMALL]).program is not None
    other = script(f"{recorded} \"$@\" && sed -i 's/double [*]dev_A;/& surprise();/' gemm_host.cu")
    assert cases.build(GEMM, out, other, arguments=[cases.SMALL]).program is None
    with refusing("EATSS-V003"):
        verify(out)


@pytest.mark.parametrize("name", ["serial", "wrong"])
def test_a_source_that_ppcg_does_not_map_fails_the_build(
    name: str, recorded: Path, tmp_path: Path
) -> None:
    source = cases.written(tmp_path / "c", f"{name}.c", getattr(cases, name.upper()))
    with pytest.raises(PpcgError) as caught:
        cases.build(source, tmp_path / "out", recorded)
    assert caught.value.code == ("EATSS-R014" if name == "serial" else "EATSS-R010")
    assert there(tmp_path / "out") == []


@pytest.mark.parametrize("named", ["no-such-ppcg", __file__])
def test_a_ppcg_that_is_none_is_told(named: str, tmp_path: Path) -> None:
    with refusing("EATSS-R003"):
        cases.build(GEMM, tmp_path / "out", named)


# -- the command ------------------------------------------------------------------------------


def command(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``eatss ppcg``."""
    line = [sys.executable, "-m", "eatss", "ppcg", "--gpu", "a100", "--objective", "paper",
            "--model", "paper", *map(str, words)]  # fmt: skip
    root = str(Path(eatss.__file__).parents[1])
    return subprocess.run(
        line, capture_output=True, text=True, check=False, cwd=cwd, timeout=120,
        env={**os.environ, "PYTHONPATH": root},
    )  # fmt: skip


def test_the_command_says_what_it_wrote_on_stderr(recorded: Path, tmp_path: Path) -> None:
    words = ("--ppcg", recorded, "--", GEMM, "-o", "out", cases.SMALL)
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not done.stdout
    assert "wrote out/gemm_kernel.hu, out/gemm_kernel.cu, out/gemm_host.cu\n" in done.stderr


@pytest.mark.usefixtures("heeded_signals")
def test_ctrl_c_ends_ppcg(script: Callable[[str], Path], tmp_path: Path) -> None:
    slow = script(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    words = ["-m", "eatss", "ppcg", "--gpu", "a100", "--ppcg", str(slow), "--", str(GEMM)]
    run = subprocess.Popen([sys.executable, *words], cwd=tmp_path, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130
    while _runs(int((tmp_path / "pid").read_text())):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _runs(pid: int) -> bool:
    """Tell whether a process runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


# -- a real PPCG ------------------------------------------------------------------------------


def test_a_real_ppcg_generates_what_is_selected(real: str, tmp_path: Path) -> None:
    for name in ("gemm", "jacobi-2d"):
        source = cases.KERNELS / f"{name}.c"
        made = eatss.ppcg(
            source, gpu="h200", ppcg=real, output=tmp_path, arguments=["-DSMALL_DATASET"]
        )
        assert made.program is not None
        assert verify(made.program, device="cpu").status == "ok"
