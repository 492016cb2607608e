"""Families of random programs: the templates of ``program_families.toml``, drawn and expanded."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from random import Random
from string import Template
from typing import Any

Sizes = Mapping[str, int]

FAMILIES: Mapping[str, Mapping[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
_USUAL_SIZES = ("n=<|3..7|>", "n=<|21..40|>")
_CHOICE = re.compile(r"<\|((?:(?!<\||\|>).)*)\|>", re.DOTALL)
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_TIMES = re.compile(r"TIMES\((\d+)\.\.(\d+): (.*?;)\)")
_FOR = re.compile(r"FOR\((\w+)(?:, ([^,()]+))?(?:, ([^,()]+))?\)")
_TAPS = re.compile(r"TAPS\(([^,]+), (\w+), (\d+), (\d+)\)")


@dataclass(frozen=True, slots=True)
class Sample:
    """A program: its C text, and the sizes at which it is compared with the original."""

    text: str
    sizes: tuple[Sizes, ...]


def sample(family: str, seed: int) -> Sample:
    """Return the program of a seed in a family."""
    rng, of = Random(f"{family} {seed}"), FAMILIES[family]  # noqa: S311 - not for secrets
    drawn: dict[str, str] = {}
    for name, choices in {"kind": "float ~ double", **of.get("draws", {})}.items():
        drawn[name] = _chosen(f"<|{Template(choices).substitute(drawn)}|>", rng)
        drawn[name.upper()] = drawn[name].upper()
    regions = "".join(
        f"#pragma scop\n{body.strip()}\n#pragma endscop\n" for body in of["body"].split("\n---\n")
    )
    text = f"{of.get('before', '')}\nvoid f({of['of']})\n{{\n{regions}}}\n"
    sizes = (_chosen(one, rng).split() for one in of.get("sizes", _USUAL_SIZES))
    return Sample(
        _expanded(Template(text).substitute(drawn), rng),
        tuple({pair.split("=")[0]: int(pair.split("=")[1]) for pair in one} for one in sizes),
    )


def _chosen(text: str, rng: Random) -> str:
    """Return a text with one of its alternatives in each place, the innermost chosen first."""
    while (place := _CHOICE.search(text)) is not None:
        ends = _RANGE.fullmatch(place[1])
        one = str(rng.randint(int(ends[1]), int(ends[2]))) if ends else ""
        one = one or rng.choice(place[1].split("~")).strip()
        text = text[: place.start()] + one + text[place.end() :]
    return text


def _expanded(text: str, rng: Random) -> str:
    def times(found: re.Match[str]) -> str:
        return " ".join([found[3]] * rng.randint(int(found[1]), int(found[2])))

    def loops(found: re.Match[str]) -> str:
        counters, upper, lower = found[1], found[2] or "n", found[3] or "0"
        return " ".join(f"for (int {c} = {lower}; {c} < {upper}; {c}++)" for c in counters)

    def taps(found: re.Match[str]) -> str:
        radius, count = int(found[3]), int(found[4])
        every = [*product(range(-radius, radius + 1), repeat=len(found[2]))]
        kept = sorted(rng.sample(every, min(count, len(every))))
        return " + ".join(f"0.{rng.randint(1, 99):02d}f * {_around(found, one)}" for one in kept)

    text = _chosen(_TIMES.sub(times, text), rng)
    return _TAPS.sub(taps, _FOR.sub(loops, text))


def _around(found: re.Match[str], offset: tuple[int, ...]) -> str:
    signs = {-1: "- ", 1: "+ "}
    at = (
        f"{c} {signs[o // abs(o)]}{abs(o)}" if o else c
        for c, o in zip(found[2], offset, strict=True)
    )
    return found[1] + "".join(f"[{one}]" for one in at)
