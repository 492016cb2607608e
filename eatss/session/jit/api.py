"""``eatss.jit``, and what :meth:`eatss.Program.compile` does."""

from __future__ import annotations

from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from eatss.base.cache import Cache, Caching
from eatss.base.diagnostics import EatssError, input_error
from eatss.base.files import StrPath, is_c_text
from eatss.base.options import Keywords, spelled_out
from eatss.base.shipped import located
from eatss.cards import GpuProfile, load_profile
from eatss.cards.this_machine import AUTO, CardLike, is_auto
from eatss.choose.options import SelectKeywords, SelectOptions
from eatss.frontend.options import Reading, ReadingKeywords
from eatss.lower.recipe import CodeRequest
from eatss.program import Program
from eatss.session.jit.callable import JitFunction, Once, ProfileOf
from eatss.session.jit.programs import Maker
from eatss.session.source import Source

CARD_WITHOUT_CARD = "h200"
"""The card that ``"auto"`` stands for where there is none: arrays of NumPy run on the CPU."""


@dataclass(frozen=True, kw_only=True)
class _Jit(Keywords, CodeRequest, SelectKeywords, ReadingKeywords, Caching):
    source: StrPath | Any = field(kw_only=False)
    gpu: CardLike = AUTO
    exact_sizes: bool = False


@spelled_out(_Jit, CodeRequest, SelectKeywords, ReadingKeywords, Caching)
def jit(asked: _Jit) -> JitFunction:
    """Make a function of C, or of loops in Python: it is selected for and compiled when called.

        gemm = eatss.jit("gemm.c")
        gemm(alpha=1.5, beta=1.2, C=C, A=A, B=B)

    Nothing is read until the first call.

    Args:
        source: Path of a C file, a kernel of eatss (``"@gemm"``), C source text (a ``str`` with
            several lines or the body of a function), or what :func:`eatss.scop` made.
        gpu: The card selected for: ``"auto"`` is the one that the arrays are on. Name of a shipped
            profile, path of a TOML profile, or a profile.
        exact_sizes: Select for the very sizes of a call. By default sizes that are near, within an
            eighth, share what is selected for them.
        **options: Those of :class:`CodeRequest`, :class:`SelectOptions`, :class:`Reading` and
            :class:`Caching`.

    Returns:
        The function. Arrays of CuPy, PyTorch, or anything with DLPack or
        ``__cuda_array_interface__`` are used where they are; arrays of NumPy run on the CPU.

    Warns:
        EatssWarning: what is hardly meant so in the source, such as a ``-D`` that changes nothing;
            the first call with a class of sizes tells it.

    Raises:
        InputError: an option is wrong. What is wrong with the source, the first call says.
    """
    if not isinstance(asked.exact_sizes, bool):
        message = f"exact_sizes is {asked.exact_sizes!r}"
        raise input_error("EATSS-C004", message, hint="give True or False")
    place, title = _placed(asked.source)
    maker = Maker(
        source=place,
        name=title,
        reading=asked.of(Reading),
        choosing=asked.of(SelectOptions, target="cuda"),
        wanted=asked.of(CodeRequest),
        cache=asked.of(Caching).chosen(),
        exact_sizes=asked.exact_sizes,
    )
    return JitFunction(maker, _profiles(asked.gpu))


def compiled(program: Program, *, cache: Cache | bool | None = None) -> JitFunction:
    """Make a function of a program that exists; arguments are those of :func:`jit`."""
    maker = Maker(name=program.name, program=program, cache=Caching(cache=cache).chosen())
    return JitFunction(maker, lambda _: None)


def _placed(source: object) -> tuple[Any, str]:
    """Return a source that stays the same where the process changes its folder, and its name.

    Raises:
        InputError: ``EATSS-C004``, it is no source.
    """
    if is_c_text(source):
        return source, "<source>"
    if isinstance(source, str | PathLike):
        title = source if isinstance(source, str) else Path(fspath(source)).name
        return str(Path(fspath(located(source))).absolute()), title
    loops = Source.of(source).python  # type: ignore[arg-type] # it says what is wrong
    assert loops is not None
    return loops, loops.name


def _profiles(gpu: CardLike) -> ProfileOf:
    """Return how the profile of a card is found, each once."""
    known: Once[GpuProfile] = Once()
    return lambda device: known.get(device, lambda: _profile(gpu, device))


def _profile(gpu: CardLike, device: int | None) -> GpuProfile:
    if not is_auto(gpu):
        return load_profile(gpu)
    if device is not None:
        return load_profile(AUTO, device)
    try:
        return load_profile(AUTO)
    except EatssError:  # no card: the CPU runs the code for one that is well known
        return load_profile(CARD_WITHOUT_CARD)
