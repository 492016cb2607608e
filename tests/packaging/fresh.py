"""Environments that know nothing of this checkout, and what is typed in them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13")


def interpreter(version: str) -> str | None:
    """Return a Python of this version: on the path, or one that pyenv installed."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = (shutil.which(f"python{version}"), *pyenv.glob(f"{version}.*/bin/python{version}"))
    for place in places:
        if place is not None and _runs(str(place)):
            return str(place)
    return None


def _runs(python: str) -> bool:
    done = subprocess.run([python, "-c", "import venv"], capture_output=True, check=False)
    return done.returncode == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A virtual environment, and an empty folder that commands run in."""

    folder: Path
    work: Path

    @classmethod
    def made(cls, folder: Path, python: str) -> Environment:
        """Make one with its own pip and nothing else."""
        work = folder / "work"
        work.mkdir(parents=True)
        subprocess.run([python, "-m", "venv", folder / "venv"], check=True, timeout=300)
        return cls(folder=folder / "venv", work=work)

    def run(self, *words: str | Path, code: int = 0) -> str:
        """Run a program of the environment and return what it says; it has to end with ``code``."""
        program, *rest = map(str, words)
        done = subprocess.run(
            [str(self.folder / "bin" / program), *rest],
            cwd=self.work,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == code, f"{' '.join(map(str, words))}\n{done.stdout}"
        return done.stdout

    def install(self, *what: str | Path) -> str:
        return self.run("pip", "install", "--no-input", "--disable-pip-version-check", *what)


def clean_environment() -> dict[str, str]:
    """Return the environment without what would lead Python or eatss elsewhere."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTHON", "EATSS_", "VIRTUAL_ENV", "PYTEST_"))
    }
