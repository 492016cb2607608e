"""Variants of programs through PPCG: what it does by itself, what we select, and random ones."""

from __future__ import annotations

import hashlib
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.ppcg_records import (
    DEFAULT,
    Manifest,
    Parameter,
    PpcgProgram,
    PpcgVariant,
    save_manifest,
)

SELECT_TIMEOUT_S = 600.0
LONGEST_TEXT = 400_000
"""Bytes of kernels; a fully unrolled tile may take more, and minutes to compile."""

SETTINGS: Mapping[str, str] = {
    "selected": "",
    "paper": "--model paper --split 0.5 --warp-fraction 0.5",
}
"""Options of ``eatss select`` by the name of the variant."""

FLAVOURS: Mapping[tuple[str, str], str] = {
    ("adi", "A"): "small",
    ("cholesky", "A"): "dominant",
    ("doitgen", "C4"): "small",
    ("durbin", "r"): "small",
    ("gramschmidt", "A"): "dominant",
    ("lu", "A"): "dominant",
    ("trisolv", "A"): "dominant",
    ("trmm", "A"): "small",
}
"""Arrays that need other numbers than those from 0.5 to 1.5, lest results overflow."""

_DEVICE_LINE = re.compile(
    r"""^\s*( $ | //.* | \#.* | [{}] | \}\s*else\s*\{ | else\s*\{? | .*\\
    | \}?\s*while\(0\) | (int|long|float|double|char)\s+[^=]*; | [\w ]+\s*\(?\*dev_\w+\)?[^=]*;
    | cudaCheck(Return|Kernel)\s*\(.*\); | dim3\s.*; | kernel\d+\s*<<<.*; | for\s*\(.*\)\s*\{?
    | if\s*\(.*\)\s*\{? | \}\s*while\s*\(0\)
    )\s*$""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is wanted of :func:`prepare`."""

    ppcg: Path
    gpu: str
    kernels: tuple[Path, ...]
    dtypes: tuple[str, ...]
    settings: Mapping[str, str]
    random: int
    seed: int
    include: tuple[str, ...]
    ppcg_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How many tile and block sizes PPCG takes for one GPU kernel."""

    number: int
    tiles: int
    blocks: int


def prepare(directory: Path, request: Request) -> Manifest:
    """Generate every variant of every program."""
    directory.mkdir(parents=True, exist_ok=True)
    jobs = [(source, dtype) for source in request.kernels for dtype in request.dtypes]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = list(pool.map(lambda job: _prepared(directory, request, *job), jobs))
    manifest = Manifest(
        programs=tuple(program for program, _ in found),
        variants=tuple(variant for _, variants in found for variant in variants),
        about={
            "gpu": request.gpu,
            "seed": str(request.seed),
            "ppcg": _version(request.ppcg),
            **{f"eatss select, {name}": options for name, options in request.settings.items()},
        },
    )
    save_manifest(manifest, directory)
    return manifest


def _prepared(
    directory: Path, request: Request, source: Path, dtype: str
) -> tuple[PpcgProgram, list[PpcgVariant]]:
    program = read_program(source, dtype)
    bare = PpcgVariant(
        kernel=source.stem, dtype=dtype, name=DEFAULT, arguments=(), status="not generated"
    )
    wanted = [bare]
    for name, options in request.settings.items():
        arguments = _selected(source, dtype, request.gpu, options)
        if isinstance(arguments, str):
            wanted.append(replace(bare, name=name, reason=arguments))
        else:
            wanted.append(replace(bare, name=name, arguments=arguments))
    shapes = _shapes(request, source, dtype)
    for number in range(request.random):
        seed = f"{request.seed} {source.stem} {dtype} {number}"
        chosen = random_arguments(random.Random(seed), shapes)  # noqa: S311
        wanted.append(replace(bare, name=f"random-{number:03}", arguments=chosen, seed=seed))
    texts: dict[str, str] = {}
    done = [_generated(directory, request, source, one, texts) for one in wanted]
    count = sum(one.status == "generated" for one in done)
    print(f"{source.stem} {dtype}: {count} of {len(done)} variants", flush=True)
    return program, done


def read_program(source: Path, dtype: str) -> PpcgProgram:
    """Return the function and its parameters, with the sizes that the macros have by default."""
    from clang import cindex  # noqa: PLC0415

    library: Any = cindex

    unit = library.Index.create().parse(str(source), args=[f"-DDATA_TYPE={dtype}"])
    (function,) = (
        one
        for one in unit.cursor.get_children()
        if one.kind == library.CursorKind.FUNCTION_DECL and one.spelling.startswith("kernel_")
    )
    parameters: list[Parameter] = []
    for one in function.get_arguments():
        shape: list[int] = []
        kind: Any = one.type
        while kind.kind == library.TypeKind.CONSTANTARRAY:
            shape.append(kind.element_count)
            kind = kind.element_type
        if kind.spelling not in ("float", "double"):
            raise ValueError(f"{source}: parameter {one.spelling} is of type {kind.spelling}")
        parameters.append(
            Parameter(
                name=one.spelling,
                dtype=kind.spelling,
                shape=tuple(shape),
                flavour=FLAVOURS.get((source.stem, one.spelling), "uniform"),
            )
        )
    return PpcgProgram(
        kernel=source.stem,
        dtype=dtype,
        function=function.spelling,
        parameters=tuple(parameters),
    )


def random_arguments(source: random.Random, shapes: Sequence[_Shape]) -> tuple[str, ...]:
    """Return arguments of PPCG, with sizes for every kernel that has any."""
    sizes: list[str] = []
    for shape in shapes:
        tile, block = _random_sizes(source, shape)
        if tile:
            sizes.append(f"kernel[{shape.number}] -> tile[{', '.join(map(str, tile))}]")
        if block:
            sizes.append(f"kernel[{shape.number}] -> block[{', '.join(map(str, block))}]")
    (shared,) = source.choices((0, 8192, 16384, 49152), (0.3, 0.25, 0.15, 0.3))
    arguments = [f"--max-shared-memory={shared}"]
    if source.random() < 0.08:
        arguments.append("--unroll-gpu-tile")
    if source.random() < 0.05:
        arguments.append("--no-private-memory")
    if sizes:
        arguments.append(f"--sizes={{ {'; '.join(sizes)} }}")
    return tuple(arguments)


def _random_sizes(source: random.Random, shape: _Shape) -> tuple[list[int], list[int]]:
    """Return sizes, outermost first; the first tile sizes are those that threads share."""
    block: list[int] = []
    if shape.blocks:
        # a kernel with threads in one dimension has few of them
        often = (4, 4, 3, 2, 1, 0.3) if shape.blocks == 1 else (1, 2, 4, 5, 3, 1)
        (threads,) = source.choices((32, 64, 128, 256, 512, 1024), often)
        left = threads
        for place in range(shape.blocks):  # the last, which is x, first
            if place == shape.blocks - 1:
                size = left
            elif place == 0:
                wide = [x for x in (4, 8, 16, 32, 64, 128, 256, 512) if x <= left]
                weights = [{4: 0.3, 8: 0.7, 512: 1}.get(x, 3.0) for x in wide]
                (size,) = source.choices(wide, weights)
            else:
                size = source.choice([x for x in (1, 2, 4, 8, 16) if x <= left])
            block.insert(0, size)
            left //= size
    tile: list[int] = []
    points, most = 1, 512 if source.random() < 0.1 else 64
    for place in range(shape.tiles):
        if place < len(block):
            if source.random() < 0.08:
                factor = 1
                size = block[place] + source.choice((0, 4, 8, 16))
            else:
                fitting = [x for x in (1, 2, 3, 4, 6, 8, 16, 32) if points * x <= most]
                fitting = [x for x in fitting if x * block[place] <= 1024]
                once = 9.0 if len(block) == 1 else 4.0
                weights = [{1: once, 2: 4.0, 4: 3.0, 8: 2.0}.get(x, 1.0) for x in fitting]
                (factor,) = source.choices(fitting, weights) if fitting else (1,)
                size = factor * block[place]
            points *= factor
        else:
            (size,) = source.choices(
                (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512),
                (0.5, 0.5, 2, 4, 5, 1, 5, 1, 4, 1, 3, 1, 0.5),
            )
        tile.append(size)
    return tile, block


def _selected(source: Path, dtype: str, gpu: str, options: str) -> tuple[str, ...] | str:
    command = [sys.executable, "-m", "eatss", "select", str(source), "--gpu", gpu]
    command += ["--dtype", dtype, "--format", "ppcg-args", *shlex.split(options)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SELECT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"eatss select took over {SELECT_TIMEOUT_S:.0f} s"
    if done.returncode:
        return f"eatss select: {' '.join(done.stderr.split())[:300]}"
    return tuple(done.stdout.split("\n")[:-1])


def _shapes(request: Request, source: Path, dtype: str) -> tuple[_Shape, ...]:
    """Learn from PPCG how many sizes every kernel has."""
    with tempfile.TemporaryDirectory() as folder:
        done = _run_ppcg(request, source, dtype, ("--dump-sizes",), Path(folder))
    if isinstance(done, str):
        raise RuntimeError(f"{source.stem}: {done}, so what it can be told is not known")
    counts: dict[str, dict[int, int]] = {"tile": {}, "block": {}, "grid": {}}
    text = done.stdout + done.stderr
    for what, sizes, where in re.findall(r"-> (\w+)\[([^\]]*)\]([^;}]*)", text):
        for number in re.findall(r"i0 = (\d+)", where):
            counts[what][int(number)] = len(sizes.split(",")) if sizes.strip() else 0
    return tuple(
        _Shape(number=number, tiles=tiles, blocks=counts["block"].get(number, 0))
        for number, tiles in sorted(counts["tile"].items())
    )


def _generated(
    directory: Path, request: Request, source: Path, wanted: PpcgVariant, texts: dict[str, str]
) -> PpcgVariant:
    if wanted.reason:
        return wanted
    folder = directory / wanted.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    done = _run_ppcg(request, source, wanted.dtype, wanted.arguments, folder)
    reason = done if isinstance(done, str) else ""
    names = [f"{source.stem}_host.cu", f"{source.stem}_kernel.cu", f"{source.stem}_kernel.hu"]
    if not reason and not all((folder / name).is_file() for name in names):
        reason = "PPCG wrote no CUDA"
    if not reason and (folder / names[1]).stat().st_size > LONGEST_TEXT:
        reason = f"PPCG wrote over {LONGEST_TEXT} bytes of kernels"
    if reason:
        _remove(folder)
        return replace(wanted, reason=reason)
    host = (folder / names[0]).read_text(encoding="utf-8")
    digest = hashlib.sha256(host.encode() + (folder / names[1]).read_bytes()).hexdigest()
    if digest in texts:
        _remove(folder)
        return replace(wanted, status="alias", same_as=texts[digest])
    texts[digest] = wanted.name
    return replace(wanted, status="generated", host_statements=has_host_statements(host))


def has_host_statements(host: str) -> bool:
    """Tell whether the host computes, other than to launch and copy."""
    body = host[host.index("void kernel_") :]
    body = body[body.index("{") + 1 :]
    return any(not _DEVICE_LINE.match(line) for line in body.splitlines())


def _run_ppcg(
    request: Request, source: Path, dtype: str, arguments: Sequence[str], folder: Path
) -> subprocess.CompletedProcess[str] | str:
    command = [str(request.ppcg.absolute()), "--target=cuda", f"-DDATA_TYPE={dtype}"]
    command += [f"-I{one}" for one in request.include]
    try:
        done = subprocess.run(
            [*command, *arguments, str(source.absolute())],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=request.ppcg_timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"PPCG took over {request.ppcg_timeout_s:.0f} s"
    if done.returncode:
        return f"PPCG ended with {done.returncode}: {_last(done.stderr)}"
    return done


def _version(ppcg: Path) -> str:
    done = subprocess.run(
        [str(ppcg.absolute()), "--version"], capture_output=True, text=True, check=False
    )
    return next(iter(done.stdout.splitlines()), "")


def _remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def _last(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:300]
