"""Every kernel file compiles cleanly, keeps its sizes and does the arithmetic its header states."""

from __future__ import annotations

import re
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

KERNEL_NAMES = (
    "2mm", "3mm", "adi", "atax", "bicg", "cholesky", "conv-2d", "correlation", "covariance",
    "doitgen", "durbin", "fdtd-2d", "fdtd-apml", "floyd-warshall", "gemm", "gemver", "gesummv",
    "gramschmidt", "heat-3d", "jacobi-1d", "jacobi-2d", "lu", "matmul", "mttkrp", "mvt",
    "seidel-2d", "symm", "syr2k", "syrk", "trisolv", "trmm",
)  # fmt: skip

DATASETS = ("MINI", "SMALL", "STANDARD", "LARGE", "EXTRALARGE")

CLEAN = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas")

# A number that only counts what is done to it. A comparison is always true.
COUNTER = """
static long operations = 0;
struct Number {
    Number() {}
    Number(double) {}
    Number operator-() const { return *this; }
#define BINARY(op) \\
    friend Number operator op(const Number &a, const Number &) { ++operations; return a; }
    BINARY(+) BINARY(-) BINARY(*) BINARY(/)
#define COMPOUND(op) \\
    Number &operator op(const Number &) { ++operations; return *this; }
    COMPOUND(+=) COMPOUND(-=) COMPOUND(*=) COMPOUND(/=)
    friend bool operator<(const Number &, const Number &) { ++operations; return true; }
    friend bool operator<=(const Number &, const Number &) { ++operations; return true; }
};
static inline Number root(const Number &a) { ++operations; return a; }
#define SQRT_Number root
"""


def test_the_folder_holds_exactly_these_kernels(kernels_folder: Path) -> None:
    assert tuple(sorted(path.stem for path in kernels_folder.glob("*.c"))) == KERNEL_NAMES


@pytest.mark.parametrize("name", KERNEL_NAMES[::2])
def test_a_kernel_compiles_without_a_warning(
    cc: str, kernels_folder: Path, name: str, dtype: str
) -> None:
    source = str(kernels_folder / f"{name}.c")
    command = [cc, *CLEAN, f"-DDATA_TYPE={dtype}", "-fsyntax-only", source]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_a_file_is_one_function_around_one_region(kernels_folder: Path, name: str) -> None:
    source = (kernels_folder / f"{name}.c").read_text(encoding="utf-8")
    assert re.findall(r"kernel_\w+(?=\()", source) == [f"kernel_{name.replace('-', '_')}"]
    assert re.findall(r"#pragma (\w+)", source) == ["scop", "endscop"]
    assert "#include" not in source


@pytest.mark.parametrize("name", KERNEL_NAMES[::3])
def test_the_header_states_the_operations_that_the_code_does(
    cxx: str, kernels_folder: Path, tmp_path: Path, name: str
) -> None:
    primes = (3, 5, 7, 11, 13)
    sizes = dict(zip(_size_macros(kernels_folder, name), primes, strict=False))
    if name == "conv-2d":
        sizes |= {"NH": 11, "NW": 13, "NKH": 2, "NKW": 3}
    stated = _evaluate(_flops(kernels_folder, name), sizes)
    assert _count(cxx, kernels_folder, name, sizes, tmp_path) == stated


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gemm", [(n, n, n) for n in (32, 128, 1024, 2000, 4000)]),
        ("gramschmidt", [(n, n) for n in (32, 128, 512, 2000, 4000)]),
    ],
)
def test_a_dataset_macro_selects_polybenchs_sizes(
    cc: str, kernels_folder: Path, name: str, expected: list[tuple[int, ...]]
) -> None:
    actual = [
        tuple(_sizes(cc, kernels_folder, name, f"-D{dataset}_DATASET").values())
        for dataset in DATASETS
    ]
    assert actual == expected


def test_medium_is_another_name_for_standard(cc: str, kernels_folder: Path) -> None:
    standard = _sizes(cc, kernels_folder, "correlation", "-DSTANDARD_DATASET")
    assert _sizes(cc, kernels_folder, "correlation", "-DMEDIUM_DATASET") == standard


def test_a_size_on_the_command_line_changes_that_size_only(cc: str, kernels_folder: Path) -> None:
    sizes = _sizes(cc, kernels_folder, "gemm", "-DNJ=77", "-DSMALL_DATASET")
    assert sizes == {"NI": 128, "NJ": 77, "NK": 128}


@pytest.mark.parametrize("name", KERNEL_NAMES[::3])
def test_the_readme_lists_the_default_sizes_and_the_flops(
    cc: str, kernels_folder: Path, name: str
) -> None:
    table = (kernels_folder / "README.md").read_text(encoding="utf-8")
    rows = [row for row in table.splitlines() if row.startswith(f"| {name} |")]
    assert len(rows) == 1
    _, _, _, sizes, flops, _ = (cell.strip() for cell in rows[0].split("|"))
    defaults = _sizes(cc, kernels_folder, name)
    assert sizes == " ".join(f"{macro}={value}" for macro, value in defaults.items())
    assert flops == _flops(kernels_folder, name)


def _size_macros(folder: Path, name: str) -> list[str]:
    source = (folder / f"{name}.c").read_text(encoding="utf-8")
    return re.findall(r"#define (\w+) SIZE\(", source)


def _sizes(cc: str, folder: Path, name: str, *options: str) -> dict[str, int]:
    """What the preprocessor makes of the size macros."""
    source = (folder / f"{name}.c").read_text(encoding="utf-8")
    macros = _size_macros(folder, name)
    text = source + "\nSIZES " + " ".join(macros) + "\n"
    command = [cc, "-E", "-P", "-x", "c", *options, "-"]
    expanded = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    values = expanded.stdout.split("SIZES")[1].split()
    return dict(zip(macros, map(int, values), strict=True))


def _flops(folder: Path, name: str) -> str:
    """The formula on the header's `Flops:` line, up to a remark after a semicolon."""
    source = (folder / f"{name}.c").read_text(encoding="utf-8")
    match = re.search(r"^ \* Flops: ([^;\n]*?)(?:;.*)?\.?$", source, re.MULTILINE)
    assert match is not None, f"{name}.c states no flops"
    return match[1]


def _evaluate(formula: str, sizes: dict[str, int]) -> Fraction:
    """`3 NI (NJ - 1)^2` with a product where two factors stand side by side."""
    text = formula.replace("^", "**")
    text = re.sub(r"(?<=[\w)])\s+(?=[\w(])", " * ", text)
    text = re.sub(r"\b(?<!\*\*)(\d+)\b", r"Fraction(\1)", text)
    value = eval(text, {"Fraction": Fraction}, dict(sizes))  # the repository's own header
    assert isinstance(value, Fraction | int)
    return Fraction(value)


def _count(cxx: str, folder: Path, name: str, sizes: dict[str, int], build: Path) -> int:
    """Compile the kernel on numbers that count their operations, run it, read the counter."""
    source = (folder / f"{name}.c").read_text(encoding="utf-8")
    signature = re.search(r"void (kernel_\w+)\((.*?)\)\n\{", source, re.DOTALL)
    assert signature is not None
    parameters = [" ".join(text.split()) for text in signature[2].split(",")]
    arguments = ", ".join(re.findall(r"DATA_TYPE (\w+)", signature[2]))
    statics = "\n".join(f"static {parameter};" for parameter in parameters)
    main = (
        f"int main() {{ {signature[1]}({arguments});"
        ' std::printf("%ld\\n", operations); return 0; }'
    )
    program = build / "count.cpp"
    program.write_text(
        "#include <cstdio>\n" + COUNTER + source + statics + "\n" + main + "\n", encoding="utf-8"
    )
    definitions = [f"-D{macro}={value}" for macro, value in sizes.items()]
    binary = build / "count"
    flags = ["-w", "-O0", "-DDATA_TYPE=Number"]
    subprocess.run([cxx, *flags, *definitions, str(program), "-o", str(binary)], check=True)
    return int(subprocess.run([binary], capture_output=True, text=True, check=True).stdout)
