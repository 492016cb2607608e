"""What is packaged: everything there is, once, under one version."""

from __future__ import annotations

import importlib.metadata
import re
import sysconfig
import tomllib
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest

import eatss
from eatss.base.shipped import IN_A_CHECKOUT, sweep_names

ROOT = Path(__file__).resolve().parents[2]
SWEEPS = [ROOT / IN_A_CHECKOUT["sweeps"] / f"{name}.db" for name in sweep_names()]
DATA = {
    "gpu_profiles": list((ROOT / "gpu_profiles").iterdir()),
    "kernels": list((ROOT / "kernels").iterdir()),
    "sweeps": SWEEPS,
}
"""What travels inside ``eatss.base.data``, by its folder there."""


def project(path: str = "pyproject.toml") -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / path).read_text())["project"]
    return found


@pytest.fixture(scope="module")
def options() -> ConfigParser:
    parser = ConfigParser()
    parser.read(ROOT / "setup.cfg")
    return parser


def source_files() -> list[Path]:
    files = (path for path in (ROOT / "eatss").rglob("*") if path.is_file())
    return [path for path in files if "__pycache__" not in path.parts]


def test_every_folder_with_code_is_a_package_that_is_listed(options: ConfigParser) -> None:
    listed = options["options"]["packages"].split()
    folders = {path.parent for path in source_files() if path.suffix == ".py"}
    there = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert sorted(listed) == sorted(there | {f"eatss.base.data.{name}" for name in DATA})


def test_every_other_file_is_package_data(options: ConfigParser) -> None:
    listed = options["options"]["packages"].split()
    places = {name: ROOT.joinpath(*name.split(".")) for name in listed}
    places |= {f"eatss.base.data.{name}": ROOT / folder for name, folder in IN_A_CHECKOUT.items()}
    packed = {
        path
        for name, patterns in options["options.package_data"].items()
        for pattern in patterns.split(",")
        for path in places[name].glob(pattern.strip())
    }
    others = {path for path in source_files() if path.suffix != ".py"}
    others |= {path for paths in DATA.values() for path in paths}
    assert packed == others


def test_what_is_installed_is_what_is_there() -> None:
    # not the description that building leaves in the tree, which workers of xdist find first
    places = [sysconfig.get_paths()["purelib"]]
    (found,) = importlib.metadata.distributions(name="eatss", path=places)
    names = {str(path) for path in found.files or () if path.parts[0] == "eatss"}
    if not names:
        pytest.skip("installed as editable: the tree itself is what is there")
    wanted = {path.relative_to(ROOT).as_posix() for path in source_files()}
    wanted |= {
        f"eatss/base/data/{name}/{path.name}" for name, paths in DATA.items() for path in paths
    }
    assert {name for name in names if not name.endswith(".pyc")} == wanted


def test_the_version_stands_in_one_place() -> None:
    assert "version" in project()["dynamic"]
    assert "version" in project("distributions/measure/pyproject.toml")["dynamic"]
    assert importlib.metadata.version("eatss") == eatss.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+|rc\d+)?", eatss.__version__)


def test_the_light_install_leaves_out_what_generates_and_nothing_else() -> None:
    whole, light = project(), project("distributions/measure/pyproject.toml")
    left_out = {re.split(r"[<>=]", one)[0] for one in whole["dependencies"]}
    left_out -= {re.split(r"[<>=]", one)[0] for one in light["dependencies"]}
    assert left_out == {"z3-solver", "islpy", "libclang", "pycparser"}
    assert set(light["dependencies"]) < set(whole["dependencies"])
    assert light["scripts"] == whole["scripts"]
    assert light["requires-python"] == whole["requires-python"]


def test_the_light_install_has_the_same_data() -> None:
    folder = ROOT / "distributions" / "measure"
    tool = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]
    packed: dict[str, Path] = {}
    for source, place in tool["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        path = (folder / source).resolve()
        packed |= (
            {f"{place}/{one.name}": one for one in path.iterdir()}
            if path.is_dir()
            else {place: path}
        )
    assert {path: place for place, path in packed.items() if "/base/data/" in place} == {
        path: f"eatss_measure/eatss/base/data/{name}/{path.name}"
        for name, paths in DATA.items()
        for path in paths
    }


def test_images_are_built_of_all_that_is_packaged() -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    taken = [line.removeprefix("!") for line in lines if line.startswith("!")]
    for path in (ROOT / "eatss", *(path for paths in DATA.values() for path in paths)):
        place = path.relative_to(ROOT)
        assert any(place.is_relative_to(one) or place.match(one) for one in taken), place
    stores = (path for path in ROOT.rglob("benchmarks/results/**/*.db") if path not in SWEEPS)
    others = [path.relative_to(ROOT) for path in stores]
    assert others
    assert not [place for place in others for one in taken if place.match(one)]


def test_extras_of_the_light_install_are_those_of_the_whole() -> None:
    whole, light = project(), project("distributions/measure/pyproject.toml")
    extras = light["optional-dependencies"]
    assert extras.pop("gpu") == ["eatss-measure[cuda13]"]
    assert whole["optional-dependencies"]["gpu"] == ["eatss[cuda13]"]
    assert set(extras) == {"cuda12", "cuda13", "report"}
    for name, wanted in extras.items():
        assert wanted == whole["optional-dependencies"][name]
