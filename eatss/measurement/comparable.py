"""What has to be the same in variants that are set beside each other, asked before measuring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eatss.diagnostics import input_error
from eatss.measurement.options import MeasureOptions, Variant
from eatss.measurement.provenance import source_hash_of
from eatss.measurement.sizes import complete_sizes
from eatss.program import Program, load_program


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What makes results of two variants comparable.

    ``source_hash`` is ``None`` where the original is not there. ``defines`` are those that the
    original was generated with; measurements do not keep them.
    """

    label: str
    program: str
    dtype: str
    source_hash: str | None
    sizes: tuple[tuple[str, int], ...]
    defines: tuple[str, ...] = ()


def check_measurable(variants: Sequence[Variant], options: MeasureOptions) -> tuple[Traits, ...]:
    """Look at all programs before any is measured; return what they are.

    Raises:
        InputError: ``EATSS-V0xx`` a folder holds no program, ``EATSS-E072`` and ``EATSS-E073``
            the sizes are not a program's.
    """
    return tuple(_traits(variants, options))


def check_comparable(variants: Sequence[Variant], options: MeasureOptions) -> None:
    """Refuse variants that could not be compared once they were measured.

    Raises:
        InputError: as :func:`check_measurable`; ``EATSS-E079`` they differ in program, type,
            original source, definitions or sizes.
    """
    traits = check_measurable(variants, options)
    for other in traits[1:]:
        check_alike(traits[0], other)


def check_alike(one: Traits, other: Traits) -> None:
    """Refuse two variants of which one cannot be said to be faster than the other.

    Raises:
        InputError: ``EATSS-E079``.
    """
    for what, own, others in (
        ("program", one.program, other.program),
        ("type", one.dtype, other.dtype),
        ("definitions (-D)", " ".join(one.defines), " ".join(other.defines)),
        ("sizes", _sizes(one), _sizes(other)),
        *_sources(one, other),
    ):
        if own != others:
            told = f": {own or 'none'} and {others or 'none'}"
            raise input_error(
                "EATSS-E079",
                f"'{one.label}' and '{other.label}' differ in their {what}{told}",
                hint="compare variants of one C file, of one type and at the same sizes; to "
                "measure different programs use: eatss measure",
            )


def _traits(variants: Sequence[Variant], options: MeasureOptions) -> Iterator[Traits]:
    for variant in variants:
        if variant.directory is None:
            continue  # it was rejected, and stands beside anything
        program = load_program(variant.directory)
        yield Traits(
            label=variant.label,
            program=program.name,
            dtype=program.dtype,
            source_hash=source_hash_of(program, variant.directory)[0],
            sizes=tuple(complete_sizes(program, options.sizes).items()),
            defines=_defines(program),
        )


def _defines(program: Program) -> tuple[str, ...]:
    """Return the definitions but that of the type, which ``dtype`` tells, given or not."""
    given = program.original.defines
    return tuple(sorted(each for each in given if each.partition("=")[2] != program.dtype))


def _sources(one: Traits, other: Traits) -> Iterator[tuple[str, str, str]]:
    """Yield what tells the originals apart, where both are known."""
    if one.source_hash is not None and other.source_hash is not None:
        yield "original source, whose hashes are", one.source_hash[:12], other.source_hash[:12]


def _sizes(traits: Traits) -> str:
    return " ".join(f"{name}={value}" for name, value in traits.sizes)
