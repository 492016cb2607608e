"""Variants of programs through PPCG: what it does by itself, what we select, and random ones."""

from __future__ import annotations

import csv
import hashlib
import math
import os
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.ppcg_records import (
    DEFAULT,
    Manifest,
    Parameter,
    PpcgProgram,
    PpcgVariant,
    load_manifest,
    save_manifest,
)

if TYPE_CHECKING:
    from eatss.analysis.facts import KernelFacts

SELECT_TIMEOUT_S = 600.0
LONGEST_TEXT = 400_000
"""Bytes of kernels; a fully unrolled tile may take more, and minutes to compile."""

MOST_TILE = 512
MOST_MAPPED = 3
"""Loops that PPCG maps to threads."""

LEAST_THREADS, MOST_THREADS = 32, 1024
STATIC_SHARED_BYTES = 49152
WITHOUT_SHARED = 0.2

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
    ("fdtd-apml", "cxmh"): "small",
    ("fdtd-apml", "cymh"): "small",
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
    """What is wanted of :func:`draw`."""

    gpu: str
    kernels: tuple[Path, ...]
    dtypes: tuple[str, ...]
    settings: Mapping[str, str]
    given: tuple[PpcgVariant, ...]
    random: int
    near: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What :func:`generate` runs."""

    ppcg: Path
    sources: Path
    include: tuple[str, ...]
    timeout_s: float = 60.0


def draw(directory: Path, request: Request) -> Manifest:
    """Choose the arguments of every variant of every program."""
    directory.mkdir(parents=True, exist_ok=True)
    jobs = [(source, dtype) for source in request.kernels for dtype in request.dtypes]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        found = list(pool.map(lambda job: _drawn(request, *job), jobs))
    manifest = Manifest(
        programs=tuple(program for program, _ in found),
        variants=tuple(variant for _, variants in found for variant in variants),
        about={
            "gpu": request.gpu,
            "seed": str(request.seed),
            **{f"eatss select, {name}": options for name, options in request.settings.items()},
        },
    )
    save_manifest(manifest, directory)
    return manifest


def _drawn(request: Request, source: Path, dtype: str) -> tuple[PpcgProgram, list[PpcgVariant]]:
    import eatss  # noqa: PLC0415

    bare = PpcgVariant(kernel=source.stem, dtype=dtype, name=DEFAULT, arguments=(), status="wanted")
    wanted = [bare]
    for name, options in request.settings.items():
        arguments = _selected(source, dtype, request.gpu, options)
        if isinstance(arguments, str):
            wanted.append(replace(bare, name=name, status="not generated", reason=arguments))
        else:
            wanted.append(replace(bare, name=name, arguments=arguments))
    wanted += [one for one in request.given if (one.kernel, one.dtype) == (source.stem, dtype)]
    kernels = eatss.inspect(source, dtype="float" if dtype == "float" else "double").facts
    seed = f"{request.seed} {source.stem} {dtype}"
    selected = next((one.arguments for one in wanted if one.name == "selected"), ())
    around = neighbours(random.Random(f"{seed} near"), selected, request.near)  # noqa: S311
    for number, near in enumerate(around):
        wanted.append(replace(bare, name=f"near-{number}", arguments=near))
    for number in range(request.random):
        one = f"{seed} {number}"
        chosen = random_arguments(random.Random(one), kernels)  # noqa: S311
        wanted.append(replace(bare, name=f"random-{number:03}", arguments=chosen, seed=one))
    return read_program(source, dtype), wanted


def generate(directory: Path, generation: Generation) -> Manifest:
    """Run PPCG for every variant that is wanted."""
    manifest = load_manifest(directory)
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        done = list(pool.map(lambda one: written(directory, generation, one), manifest.variants))
    known: dict[str, str] = {}
    for place, (one, digest) in enumerate(done):
        if one.status == "generated":
            first = known.setdefault(f"{one.kernel} {one.dtype} {digest}", one.name)
            if first != one.name:
                _remove(directory / one.folder)
                done[place] = replace(one, status="alias", same_as=first), digest
    manifest = replace(
        manifest,
        variants=tuple(one for one, _ in done),
        about={**manifest.about, "ppcg": _version(generation.ppcg)},
    )
    save_manifest(manifest, directory)
    return manifest


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


def random_arguments(source: random.Random, kernels: Sequence[KernelFacts]) -> tuple[str, ...]:
    """Return arguments of PPCG with any sizes that fit a block, drawn evenly in their logarithms.

    Every kernel has its own tiles, each at most :data:`MOST_TILE` and its loop's trips, and threads
    of which no loop has more than points of its tile. Shared memory is off one time in five.
    """
    sizes: list[str] = []
    for kernel in kernels:
        reaches = [max(1, min(loop.trip_count or MOST_TILE, MOST_TILE)) for loop in kernel.loops]
        mapped = min(len(kernel.parallel_loops), MOST_MAPPED)
        if not reaches:
            continue
        least = min(LEAST_THREADS, prod(reaches[:mapped]))
        while True:
            tile = [_log_uniform(source, reach) for reach in reaches]
            block = [_log_uniform(source, size) for size in tile[:mapped]]
            if least <= prod(block) <= MOST_THREADS:
                break
        sizes.append(f"kernel[{kernel.index}] -> tile[{', '.join(map(str, tile))}]")
        sizes.append(f"kernel[{kernel.index}] -> block[{', '.join(map(str, block))}]")
    shared = 0 if source.random() < WITHOUT_SHARED else STATIC_SHARED_BYTES
    return (f"--max-shared-memory={shared}", *_sizes_argument(sizes))


def given_variants(path: Path) -> tuple[PpcgVariant, ...]:
    """Read variants that somebody names: a CSV of kernel, dtype, name and arguments."""
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(
            PpcgVariant(
                kernel=row["kernel"],
                dtype=row["dtype"],
                name=row["name"],
                arguments=tuple(shlex.split(row["arguments"])),
                status="wanted",
            )
            for row in csv.DictReader(file)
        )


def neighbours(
    source: random.Random, arguments: Sequence[str], count: int
) -> list[tuple[str, ...]]:
    """Return arguments with one size one larger or smaller, each other than the others."""
    text = next((one for one in arguments if one.startswith("--sizes=")), "")
    places = [
        (place, number + step)
        for place in re.finditer(r"(?<!kernel\[)(?<=[\[ ])\d+(?=[,\]])", text)
        for number in (int(place[0]),)
        for step in (-1, 1)
        if number + step > 0
    ]
    rest = tuple(one for one in arguments if one is not text)
    return [
        (*rest, f"{text[: place.start()]}{number}{text[place.end() :]}")
        for place, number in source.sample(places, min(count, len(places)))
    ]


def _log_uniform(source: random.Random, most: int) -> int:
    return int(math.exp(source.random() * math.log(most + 1)))


def _sizes_argument(sizes: Sequence[str]) -> tuple[str, ...]:
    return (f"--sizes={{ {'; '.join(sizes)} }}",) if sizes else ()


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


def written(
    directory: Path, generation: Generation, wanted: PpcgVariant
) -> tuple[PpcgVariant, str]:
    """Have PPCG write a variant; return it with its state, and what stands for its text."""
    if wanted.status == "not generated":
        return wanted, ""
    folder = directory / wanted.folder
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    reason = _run_ppcg(generation, wanted, folder)
    names = [f"{wanted.kernel}_{part}" for part in ("host.cu", "kernel.cu", "kernel.hu")]
    if not reason and not all((folder / name).is_file() for name in names):
        reason = "PPCG wrote no CUDA"
    if not reason and (folder / names[1]).stat().st_size > LONGEST_TEXT:
        reason = f"PPCG wrote over {LONGEST_TEXT} bytes of kernels"
    if reason:
        _remove(folder)
        return replace(wanted, status="not generated", reason=reason), ""
    host = (folder / names[0]).read_text(encoding="utf-8")
    digest = hashlib.sha256(host.encode() + (folder / names[1]).read_bytes()).hexdigest()
    host_statements = has_host_statements(host)
    return replace(wanted, status="generated", host_statements=host_statements), digest


def has_host_statements(host: str) -> bool:
    """Tell whether the host computes, other than to launch and copy."""
    body = host[host.index("void kernel_") :]
    body = body[body.index("{") + 1 :]
    return any(not _DEVICE_LINE.match(line) for line in body.splitlines())


def _run_ppcg(generation: Generation, wanted: PpcgVariant, folder: Path) -> str:
    """Write a variant's files; return what went wrong."""
    command = [str(generation.ppcg.absolute()), "--target=cuda", f"-DDATA_TYPE={wanted.dtype}"]
    command += [f"-I{one}" for one in generation.include]
    source = generation.sources.absolute() / f"{wanted.kernel}.c"
    try:
        done = subprocess.run(
            [*command, *wanted.arguments, str(source)],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=generation.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"PPCG took over {generation.timeout_s:.0f} s"
    return f"PPCG ended with {done.returncode}: {_last(done.stderr)}" if done.returncode else ""


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
