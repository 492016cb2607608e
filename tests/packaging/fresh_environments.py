"""Wheel, source distribution and light install, each alone in an environment of its own."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import eatss
from tests.packaging.fresh import PYTHONS, Environment, clean_environment, interpreter

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--size", "NI=40,NJ=40,NK=40")
WHERE = "import eatss, pathlib; print(pathlib.Path(eatss.__file__).parent)"
MADE_BY_PYTHON = ("PKG-INFO", "eatss.egg-info")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the distributions; building them warns of nothing."""
    folder = tmp_path_factory.mktemp("dist")
    with (ROOT / "pyproject.toml").open() as project:
        fcntl.flock(project, fcntl.LOCK_EX)  # building writes into the tree: one at a time
        build(folder)
    return folder


def build(folder: Path) -> None:
    for what in ([str(ROOT)], ["--wheel", str(ROOT / "distributions" / "measure")]):
        done = subprocess.run(
            [sys.executable, "-m", "build", "--outdir", str(folder), *what],
            env=clean_environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert [line for line in said.splitlines() if "warning" in line.lower()] == []


def one(folder: Path, pattern: str) -> Path:
    (found,) = folder.glob(pattern)
    return found


def fresh(tmp_path: Path, version: str = "3.11") -> Environment:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    return Environment.made(tmp_path / "fresh", python)


def generate_and_verify(there: Environment) -> None:
    """Do what a first user does, from the kernels that are installed."""
    assert there.run("eatss", "--version").splitlines()[0] == f"eatss {eatss.__version__}"
    assert "eatss select works here." in there.run("eatss", "doctor")
    package = Path(there.run("python", "-c", WHERE).strip())
    gemm = package / "base" / "data" / "kernels" / "gemm.c"
    assert there.folder in gemm.parents
    assert "lower bound" in there.run("eatss", "select", gemm, "--gpu", "a100")
    there.run("eatss", "codegen", gemm, "--gpu", "h200", "-o", "build/gemm")
    assert "on this CPU: ok" in there.run("eatss", "verify", "build/gemm", *SMALL)


@pytest.mark.parametrize("kind", ["whl", "tar.gz"])
@pytest.mark.parametrize("version", PYTHONS)
def test_it_installs_alone_and_works(version: str, kind: str, built: Path, tmp_path: Path) -> None:
    there = fresh(tmp_path, version)
    there.install(one(built, f"eatss-*.{kind}"))
    there.run("pip", "check")
    generate_and_verify(there)


def test_the_lowest_versions_that_are_allowed_work(built: Path, tmp_path: Path) -> None:
    there = fresh(tmp_path)
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lowest = [each.partition(",")[0].replace(">=", "==") for each in wanted]
    there.install(one(built, "eatss-*.whl"), *lowest)
    listed = there.run("pip", "list", "--format", "freeze").lower()
    assert "numpy==1.26.0" in listed
    generate_and_verify(there)


def test_the_source_distribution_has_every_file(built: Path) -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split("\n")
    with tarfile.open(one(built, "eatss-*.tar.gz")) as archive:
        names = {name.name.partition("/")[2] for name in archive if name.isfile()}
    assert {name for name in listed if name} - names == set()
    more = {name for name in names - set(listed) if not name.startswith(MADE_BY_PYTHON)}
    assert more <= {"setup.cfg"}


def test_a_wheel_has_nothing_but_the_package(built: Path) -> None:
    for pattern, package in (("eatss-*.whl", "eatss"), ("eatss_measure-*.whl", "eatss_measure")):
        names = zipfile.ZipFile(one(built, pattern)).namelist()
        top = {name.partition("/")[0] for name in names if ".dist-info/" not in name}
        assert top - {"eatss-measure.pth"} == {package}
        assert not [name for name in names if name.endswith((".pyc", ".so")) or "test" in name]
        kept = sum(name.endswith(".py") for name in names)
        assert kept == len(list((ROOT / "eatss").rglob("*.py")))


def test_the_light_install_verifies_and_measures_without_what_generates(
    built: Path, tmp_path: Path
) -> None:
    there = fresh(tmp_path)
    there.install(one(built, "eatss_measure-*.whl"))
    there.run("pip", "check")
    listed = there.run("pip", "list", "--format", "freeze")
    assert not [name for name in ("z3", "islpy", "libclang") if name in listed]
    eatss.codegen(ROOT / "kernels" / "gemm.c", gpu="h200", output=there.work / "gemm")
    assert "on this CPU: ok" in there.run("eatss", "verify", "gemm", *SMALL)
    assert "EATSS-E02" in there.run("eatss", "measure", "gemm", code=2)
    gemm = there.work / "gemm" / "gemm.c"
    said = there.run("eatss", "select", gemm, "--gpu", "h200", code=2)
    assert "this needs z3-solver, islpy, libclang, pycparser, not installed here" in said
    store = ROOT / "benchmarks" / "results" / "h200" / "sweeps" / "conv-2d.db"
    assert "conv-2d" in there.run("eatss", "report", store, "--format", "csv")
    assert "conv-2d" in there.run("eatss", "report", store, "--format", "text")
    assert "gemm" in there.run("eatss", "report", "@gemm")
    assert "eatss-measure has all that it needs here" in there.run("eatss", "doctor")
    there.run("pip", "uninstall", "-y", "networkx")
    assert "cannot run here without: networkx" in there.run("eatss", "doctor", code=1)
    assert "h200" in there.run("eatss", "profiles")


def test_the_light_install_and_the_whole_stand_beside_each_other(
    built: Path, tmp_path: Path
) -> None:
    there = fresh(tmp_path)
    light, whole = one(built, "eatss_measure-*.whl"), one(built, "eatss-*.whl")
    there.install(light)
    assert there.run("python", "-c", WHERE).strip().endswith("/eatss_measure/eatss")
    there.install(whole)
    assert there.run("python", "-c", WHERE).strip().endswith("/site-packages/eatss")
    generate_and_verify(there)
    there.run("pip", "uninstall", "-y", "eatss")
    assert there.run("python", "-c", WHERE).strip().endswith("/eatss_measure/eatss")
    there.run("python", "-m", "eatss", "verify", "build/gemm", *SMALL)
    there.install(whole)
    there.run("pip", "uninstall", "-y", "eatss-measure")
    there.run("python", "-m", "eatss", "verify", "build/gemm", *SMALL)


def test_one_file_measures_where_there_is_only_numpy(built: Path, tmp_path: Path) -> None:
    tools = Environment.made(tmp_path / "tools", sys.executable)
    tools.install("shiv")
    one_file = tools.work / "eatss-measure.pyz"
    recipe = (ROOT / "distributions" / "measure" / "one-file.sh").read_text()
    script = tools.folder / "bin" / "one-file.sh"
    script.write_text(recipe.replace("shiv --", f"{tools.folder}/bin/shiv --"))
    script.chmod(0o755)
    shutil.copy(ROOT / "distributions" / "measure" / "one-file.txt", script.parent)
    tools.run("one-file.sh", one(built, "eatss-*.whl"), one_file)
    assert one_file.stat().st_size < 5_000_000
    there = fresh(tmp_path)
    there.install("numpy")
    eatss.codegen(ROOT / "kernels" / "gemm.c", gpu="h200", output=there.work / "gemm")
    assert "on this CPU: ok" in there.run("python", one_file, "verify", "gemm", *SMALL)
    assert "EATSS-E02" in there.run("python", one_file, "measure", "gemm", code=2)
