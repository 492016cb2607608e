"""A PPCG that answers from recordings, and what makes them with a real one.

    python recorded_ppcg.py STORE REAL WORDS…

runs the PPCG ``REAL`` with ``WORDS`` and notes in the file ``STORE`` what it answered; where
``REAL`` is ``-``, the answer comes from there. An answer belongs to the options, to the contents of
the C file, of the headers in its folder and of a schedule that is loaded.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

STORE = Path(__file__).with_name("recordings.json")
_UNKNOWN = 99


def wrapper(path: Path, store: Path = STORE, real: str = "-") -> Path:
    """Write a command that is such a PPCG."""
    words = " ".join(f"'{word}'" for word in (sys.executable, "-S", __file__, store, real))
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


def key_of(words: Sequence[str], folder: Path) -> str:
    """Return what an answer is found under: the command in words, and a digest of what it reads."""
    source = Path(words[-1])
    options = [word for word in words[:-1] if not word.startswith("-I")]
    digest = hashlib.sha256()
    read = [source, *sorted(source.parent.glob("*.h"))]
    read += [folder / w.partition("=")[2] for w in options if w.startswith("--load-schedule=")]
    for path in read:
        digest.update(path.read_bytes())
    return " ".join([*options, source.name, digest.hexdigest()[:16]])


def record(store: Path, real: str, words: Sequence[str], folder: Path) -> int:
    """Run a real PPCG, note its answer and give it."""
    known = json.loads(store.read_text()) if store.exists() else {}
    key = key_of(words, folder)
    before = {path.name for path in folder.iterdir()}
    done = subprocess.run([real, *words], capture_output=True, text=True, check=False, cwd=folder)
    said = done.stdout + done.stderr
    made = {path for path in folder.iterdir() if path.name not in before or path.suffix != ".c"}
    files = {path.name: path.read_text() for path in sorted(made) if _is_written(path, words)}
    known[key] = {"code": done.returncode, "said": said, "files": files}
    store.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")
    sys.stdout.write(said)
    return done.returncode


def _is_written(path: Path, words: Sequence[str]) -> bool:
    """Tell whether a file is one that PPCG writes, as a schedule that it loads is not."""
    saves = any(word.startswith("--save-schedule") for word in words)
    return path.suffix in (".cu", ".hu") or (path.suffix == ".schedule" and saves)


def replay(store: Path, words: Sequence[str], folder: Path) -> int:
    """Give an answer that was noted."""
    key = key_of(words, folder)
    answer = json.loads(store.read_text()).get(key)
    if answer is None:
        sys.stderr.write(
            f"nothing is recorded for '{key}': python -m benchmarks.ppcg_record PPCG\n"
        )
        return _UNKNOWN
    for name, text in answer["files"].items():
        (folder / name).write_text(text)
    sys.stdout.write(answer["said"])
    return int(answer["code"])


def main() -> int:
    store, real, *words = sys.argv[1:]
    if real == "-":
        return replay(Path(store), words, Path.cwd())
    return record(Path(store), real, words, Path.cwd())


if __name__ == "__main__":
    sys.exit(main())
