"""The notebooks run from top to bottom, and are kept without what they printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.usefixtures("kept")

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
SHOWN = {
    "tutorial": ("kernel0 {'i': 128, 'j': 128, 'k': 32}", "product  on this CPU: ok", "128×128×32"),
    "sweep_report": ("conv-2d on NVIDIA H200 307 rows", "least energy    0.0736 ms    0.0515 J"),
}
"""What a reader is shown, among other things."""


def read(notebook: Path) -> Any:
    return nbformat.read(notebook, as_version=4)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder to run in that lies in the repository as the notebooks do."""
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    folder = tmp_path / "examples" / "notebooks"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, place: Path) -> None:
    pages = read(notebook)
    where = {"metadata": {"path": str(place)}}
    NotebookClient(pages, timeout=120, kernel_name="python3", resources=where).execute()
    outputs = [output for cell in pages.cells for output in cell.get("outputs", ())]
    said = "".join(output.get("text", "") for output in outputs)
    for words in SHOWN[notebook.stem]:
        assert words in said
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(notebook: Path) -> None:
    cells = [cell for cell in read(notebook).cells if cell.cell_type == "code"]
    assert cells
    for cell in cells:
        assert (cell.outputs, cell.execution_count) == ([], None)
