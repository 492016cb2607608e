"""The command line of PPCG as its user wrote it: what eatss takes out of it, and what is passed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from eatss.base.diagnostics import InputError, input_error
from eatss.base.frozen import frozen
from eatss.base.shipped import source_path

_SEPARATE = ("-D", "-I", "-o", "-S")
"""Short options whose value may be a word of its own."""

_OURS = {
    "--save-schedule": "eatss has PPCG save its schedule and load it again",
    "--load-schedule": "eatss has PPCG save its schedule and load it again",
    "--sizes": "eatss selects the sizes",
    "--tile-size": "eatss selects the sizes",
    "-S": "eatss selects the sizes",
    "--max-shared-memory": "eatss selects it with the sizes",
    "--unroll-gpu-tile": "eatss selects it with the sizes",
    "--no-unroll-gpu-tile": "eatss selects it with the sizes",
    "--hybrid": "with it a tile size means something else",
}
_NEVER = ("--save-schedule", "--load-schedule")


@frozen
class PpcgArguments:
    """What stands after ``--``.

    ``source`` is the C file and ``output`` the folder of ``-o``, ``None`` where there is none.
    ``defines`` and ``include_dirs`` are those that the C is read with; ``others`` are all other
    options. :attr:`options` are what PPCG gets, in the order given, folders as absolute paths: it
    runs in a folder of its own.
    """

    source: Path
    output: Path | None
    defines: tuple[str, ...]
    include_dirs: tuple[Path, ...]
    others: tuple[str, ...]

    @property
    def options(self) -> tuple[str, ...]:
        """What PPCG is told besides the source."""
        return (
            *(f"-D{define}" for define in self.defines),
            *(f"-I{folder.absolute()}" for folder in self.include_dirs),
            *self.others,
        )


def ppcg_arguments(words: Sequence[str], *, selecting: bool = True) -> PpcgArguments:
    """Read PPCG's command line.

    Args:
        words: what stands after ``--``: a C file and options, in any order.
        selecting: whether eatss chooses sizes; then options that choose them are refused.

    Raises:
        InputError: ``EATSS-R001`` there is no C file, or several; ``EATSS-R002`` an option goes
            with nothing that is done here; ``EATSS-C017`` there is no such kernel of eatss.
    """
    files: list[str] = []
    taken: dict[str, list[str]] = {"-D": [], "-I": [], "-o": []}
    others: list[str] = []
    rest = iter(words)
    for word in rest:
        name = word[:2] if word[:2] in _SEPARATE else word.partition("=")[0]
        _check(name, word, selecting=selecting)
        if name == "--pet-include-path":
            taken["-I"].append(word.partition("=")[2])
        elif name in _SEPARATE:
            value = word[2:] or next(rest, None)
            if value is None:
                raise _wrong(f"'{name}' is the last word, and its value is missing")
            if name in taken:
                taken[name].append(value)
            else:
                others.append(f"{name}{value}")
        elif word.startswith("-"):
            others.append(word)
        else:
            files.append(word)
    if len(files) != 1:
        what = f"{len(files)} files: {', '.join(files)}" if files else "no C file"
        raise _wrong(f"PPCG is given {what}; it takes one")
    return PpcgArguments(
        source=source_path(files[0]),
        output=Path(taken["-o"][-1]) if taken["-o"] else None,
        defines=tuple(taken["-D"]),
        include_dirs=tuple(map(Path, taken["-I"])),
        others=tuple(others),
    )


def _check(name: str, word: str, *, selecting: bool) -> None:
    if name == "--target" and word != "--target=cuda":
        raise _refused(word, "only CUDA is generated here", "leave it out")
    if name in _NEVER or (selecting and name in _OURS):
        hint = "leave it out" if name in _NEVER else "leave it out, or add --no-select before --"
        raise _refused(name, _OURS[name], hint)


def _refused(option: str, why: str, hint: str) -> InputError:
    return input_error("EATSS-R002", f"PPCG's option '{option}' cannot be given: {why}", hint=hint)


def _wrong(message: str) -> InputError:
    return input_error(
        "EATSS-R001",
        message,
        hint="write: eatss ppcg --gpu h200 -- gemm.c -o build -DN=1000; a value belongs to its "
        "option, as in --ctx='[n] -> { : n > 0 }'",
    )
