"""What contributors and services read says the same as the project itself."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import eatss

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
FORMS = sorted(path for path in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if path.stem != "config")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())  # type: ignore[no-untyped-call]
    return found


def shell_lines(workflow: Path) -> list[str]:
    steps = [step for job in read(workflow)["jobs"].values() for step in job["steps"]]
    return [line for step in steps for line in step.get("run", "").splitlines()]


def pinned() -> dict[str, str]:
    """Return packages of which one version is wanted."""
    parts = (one.partition("==") for one in PROJECT["optional-dependencies"]["dev"])
    return {name: version for name, _, version in parts if version}


def test_hooks_lint_with_the_versions_of_the_project() -> None:
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    ruff = {
        one for hook in hooks for one in hook.get("additional_dependencies", ()) if "ruff" in one
    }
    assert ruff == {f"ruff=={pinned()['ruff']}"}
    (mypy,) = [hook for hook in hooks if hook["id"] == "mypy"]
    assert mypy["language"] == "system"  # that of the environment, which pyproject.toml pins
    assert set(pinned()) == {"ruff", "mypy"}


def test_hooks_run_what_ci_runs() -> None:
    hooks = read(ROOT / ".pre-commit-config.yaml")["repos"][0]["hooks"]
    assert {"ruff-format", "ruff-check", "mypy"} <= {hook["id"] for hook in hooks}
    script = (ROOT / ".ci" / "run").read_text()
    for command in ("ruff format --check .", "ruff check .", "mypy"):
        assert f".venv/bin/{command}\n" in script
        assert command in shell_lines(GITHUB / "workflows" / "ci.yml")


def test_every_python_is_tested_on_both_processors() -> None:
    matrix = read(GITHUB / "workflows" / "ci.yml")["jobs"]["test"]["strategy"]["matrix"]
    prefix = "Programming Language :: Python :: 3."
    known = [one.removeprefix(prefix) for one in PROJECT["classifiers"] if one.startswith(prefix)]
    assert matrix["python"] == [f"3.{minor}" for minor in known]
    assert [os.endswith("-arm") for os in matrix["os"]] == [False, True]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_use_what_there_is(workflow: Path) -> None:
    lines = shell_lines(workflow)
    for extra in re.findall(r"\.\[(\w+)\]", "\n".join(lines)):
        assert extra in PROJECT["optional-dependencies"]
    scripts = [line.split()[0] for line in lines if re.match(r"[.\w-]+/", line)]
    assert scripts
    for script in scripts:
        assert os.access(ROOT / script, os.X_OK), script
    for folder in re.findall(r"(?:pytest.*|--wheel.*) (\w+/\w+)$", "\n".join(lines), re.M):
        assert (ROOT / folder).is_dir()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_may_do_no_more_than_they_need(workflow: Path) -> None:
    found = read(workflow)
    assert found["permissions"] == {"contents": "read"}
    for name, job in found["jobs"].items():
        assert job["timeout-minutes"] <= 45
        more = job.get("permissions", {})
        assert more == {"publish": {"id-token": "write"}, "announce": {"contents": "write"}}.get(
            name, {}
        )


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_forms_ask_for_what_an_answer_needs(form: Path) -> None:
    found = read(form)
    fields = [part for part in found["body"] if part["type"] != "markdown"]
    identifiers = [field["id"] for field in fields]
    assert len(set(identifiers)) == len(identifiers)
    assert any(field.get("validations", {}).get("required") for field in fields)
    if form.stem != "feature":
        assert "version" in identifiers
        assert "`eatss doctor`" in form.read_text()


def test_the_citation_is_of_this_version() -> None:
    citation = read(ROOT / "CITATION.cff")
    assert citation["version"] == eatss.__version__
    assert citation["license"] == PROJECT["license"]
    (paper,) = citation["references"]
    assert paper["title"] == "Energy-Aware Tile Size Selection for Affine Programs on GPUs"
    assert [one["family-names"] for one in paper["authors"]] == [
        "Jayaweera",
        "Kong",
        "Wang",
        "Kaeli",
    ]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/install.md"])
def test_pages_name_what_there_is(page: str) -> None:
    text = (ROOT / page).read_text()
    here = (ROOT / page).parent
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text)]
    for link in links:
        assert link.startswith("https://") or (here / link).exists(), link
    for path in re.findall(r"(?:tests|benchmarks|distributions|eatss)/[\w/-]+(?:\.\w+)?", text):
        assert (ROOT / path).exists(), path
    for extra in re.findall(r"(?:eatss|\.)\[([\w,]+)\]", text):
        assert set(extra.split(",")) <= set(PROJECT["optional-dependencies"])
