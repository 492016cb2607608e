"""The lab of a sweep: the cards of this machine, or a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from eatss.cache import key_of
from eatss.explore.campaign import Plan
from eatss.explore.lab import Lab, LocalLab
from eatss.explore.nouns import BenchJob, MakerJob
from eatss.explore.options import SweepOptions
from eatss.explore.setting import Setting
from eatss.files import is_c_text

MOST_MAKERS = 14


@contextmanager
def opened_lab(
    setting: Setting,
    options: SweepOptions,
    benches: Sequence[BenchJob],
    scheduler: str | None,
) -> Iterator[Lab]:
    """Yield where variants are made and measured.

    Args:
        setting: the plan, and what makes its variants.
        options: how the sweep goes.
        benches: the cards; without any, variants are made and not measured.
        scheduler: address of a Dask scheduler, ``"local"`` for a cluster here, or ``None``.

    Raises:
        InputError: ``EATSS-W03x``, there is no such cluster.
    """
    makers = options.makers or max(1, min(MOST_MAKERS, (os.cpu_count() or 2) - 1))
    if scheduler is not None:
        from eatss.explore.cluster import cluster_lab  # noqa: PLC0415 - Dask is an extra

        plan, job = setting.plan, setting.job
        name = f"eatss-{key_of(*_what(plan, job, options))[:16]}"
        with cluster_lab(setting.workshop, job, name, benches, makers, scheduler) as found:
            yield found
        return
    lab = LocalLab(setting.workshop, makers, benches)
    try:
        yield lab
    finally:
        lab.close()


def _what(plan: Plan, job: MakerJob | None, options: SweepOptions) -> tuple[object, ...]:
    """Return what tells a sweep from all others, the same in every session of it."""
    made_of: object = None
    if job is not None:
        text = job.source.source
        content = text if is_c_text(text) else _source_bytes(text)
        made_of = (replace(job, folder="", choices=()), content)
    measured = (options.seed, options.meter, options.timeout_s, options.compares)
    return (plan.path.absolute(), plan.space_text, made_of, *measured, options.objective)


def _source_bytes(source: str) -> bytes:
    """Return the text of a file that may have a function's name after it."""
    file, python, _ = source.rpartition(".py:")
    return Path(file + ".py" if python else source).read_bytes()
