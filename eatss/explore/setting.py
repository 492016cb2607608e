"""A source, or variants that were prepared, as the plan of a sweep and what makes its variants."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path

from eatss.diagnostics import Diagnostic
from eatss.explore.campaign import Plan
from eatss.explore.generation import (
    Generation,
    generator_of,
    made_folder,
    ppcg_program,
    source_text,
)
from eatss.explore.lab import Done
from eatss.explore.maker_process import MakerProcess, PreparedVariants, Workshop
from eatss.explore.nouns import MakerJob
from eatss.explore.options import SweepOptions
from eatss.explore.prepared import Prepared
from eatss.explore.rows import identity_of
from eatss.frozen import frozen
from eatss.gpu.document import profile_to_document
from eatss.gpu.this_machine import AUTO, load_profile
from eatss.point import Value
from eatss.python_source.python_scop import PythonScop
from eatss.space.bound import bind
from eatss.space.document import read_space, space_text
from eatss.space.nouns import Space
from eatss.store.nouns import Identity, Role, Sizes
from eatss.strategies import ListedSpace


@frozen
class Setting:
    """A plan, what makes its variants, and what is to be said of the source.

    ``job`` is ``None`` where they were made before.
    """

    plan: Plan
    workshop: Callable[[], Workshop]
    job: MakerJob | None
    warnings: tuple[Diagnostic, ...] = ()


def of_source(
    source: str | PathLike[str] | PythonScop,
    path: Path,
    options: SweepOptions,
    generation: Generation,
    stack: ExitStack,
    card: str | None,
    *,
    ahead: bool = True,
) -> Setting:
    """Return the plan of a sweep of a source, and what makes its variants."""
    from eatss.explore.outline import outlined  # noqa: PLC0415 - prepared variants need no isl

    profile = load_profile(generation.gpu, options.devices[0])
    folder = generation.keep
    if folder is None:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="eatss-sweep-"))
    made_folder(folder)
    major, minor = profile.compute_capability
    space = generation.space
    if space is not None and not isinstance(space, Space):
        space = read_space(space)
    job = MakerJob(
        source=source_text(source, generation.reading),
        target=generation.target,
        profile=json.dumps(profile_to_document(profile)),
        objective="energy" if options.objective == "pareto" else options.objective,
        capability=10 * major + minor if card is None and ahead else 0,
        folder=str(Path(fspath(folder)).absolute()),
        compiler=options.compiler,
        nvcc=options.nvcc,
        ppcg=ppcg_program(generation),
        ppcg_arguments=generation.ppcg_arguments,
    )
    budget = options.limited.variants or 1000
    outline = outlined(job, space, rank=min(2 * budget, 4000))
    job = replace(job, choices=outline.choices)
    bound = bind(outline.space, dict(outline.constants))
    known = dict(outline.parameters)
    varied = tuple(name for name in known if name in bound.names or name in bound.variant)
    generator = generator_of(generation)

    def identity(done: Done) -> Identity:
        return identity_of(done, job.source, job.target, generator, varied, options)

    plan = Plan(
        space=bound,
        decide=bound.decisions,
        ranked=outline.ranked,
        roles=outline.roles,
        options=options,
        identity=identity,
        path=path,
        space_text=space_text(outline.space),
        keeps=generation.keep is not None,
        varied=varied,
        sized_roles=tuple((role, at) for at in outline.sizes for role, _ in outline.roles),
    )
    return Setting(
        plan=plan, workshop=lambda: MakerProcess(job), job=job, warnings=outline.warnings
    )


def of_prepared(prepared: Prepared, path: Path, options: SweepOptions, card: str | None) -> Setting:
    """Return the plan of a sweep over prepared variants, and what has them."""
    points: list[dict[str, Value]] = []
    roles: list[tuple[Role, dict[str, Value] | None]] = []
    sized_roles: list[tuple[Role, Sizes]] = []
    for one in prepared.variants:
        point = dict(one.wanted.values)
        known = set(point) == set(prepared.names)
        if one.wanted.role and one.wanted.decisions:
            sizes = tuple((name, int(value)) for name, value in one.wanted.decisions)
            sized_roles.append((one.wanted.role, sizes))
        elif one.wanted.role:
            roles.append((one.wanted.role, point if known else None))
        elif known:
            points.append(point)
    made = {one.wanted.variant: one.made for one in prepared.variants}
    proposed_by = {one.wanted.variant: one.wanted.strategy for one in prepared.variants}

    def identity(done: Done) -> Identity:
        source, target = prepared.source, prepared.target
        return identity_of(done, source, target, prepared.generator, prepared.varied, options)

    def workshop() -> Workshop:
        if card is not None:
            return PreparedVariants(made=made, capability=0, toolchains=())
        profile = load_profile(AUTO, options.devices[0])
        major, minor = profile.compute_capability
        return PreparedVariants.on(made, 10 * major + minor)

    plan = Plan(
        space=ListedSpace(prepared.names, points),
        decide=lambda point: point,
        ranked=tuple(points),
        roles=tuple(roles),
        options=options,
        identity=identity,
        path=path,
        space_text=prepared.space,
        keeps=True,
        varied=prepared.varied,
        sized_roles=tuple(sized_roles),
        proposed_by=proposed_by,
    )
    return Setting(plan=plan, workshop=workshop, job=None)
