"""Variants of what PPCG generates: the paper's own experiment, tile sizes given by position."""

from __future__ import annotations

import json
import re
from pathlib import Path

from eatss.base.diagnostics import Diagnostic, EatssError, InputError, input_error
from eatss.building import ppcg
from eatss.cards.document import profile_from_document
from eatss.choose.options import SelectOptions
from eatss.lower.recipe.options import CodeRequest
from eatss.measurement.labels import TileChoice
from eatss.session.session import Session
from eatss.tune.explore.generation import own_folder
from eatss.tune.explore.nouns import Made, MakerJob, Wanted
from eatss.tune.explore.rows import predicted_metrics
from eatss.tune.point import Point
from eatss.tune.store.nouns import Metrics, Sizes

_PLACED = re.compile(r"(tile|threads)_(\d+)")


class PpcgMaker:
    """Runs PPCG for each variant of one program."""

    def __init__(self, job: MakerJob) -> None:
        text = job.source
        self._job = job
        self._source = Path(text.source)
        self._profile = profile_from_document(json.loads(job.profile))
        self._session = Session(text.source, text.reading(), cut="ppcg")

    def warm(self) -> None:
        """Analyse the source, for what is expected of variants."""
        _ = self._session.analysed

    def set_up(self, wanted: Wanted) -> None:
        """Analyse the source, if that is not done."""
        del wanted
        self.warm()

    def make(self, wanted: Wanted) -> Made:
        """Let PPCG generate a variant into a folder of its own.

        Raises:
            EatssError: it cannot be made, or what PPCG generates cannot be measured.
        """
        decisions: Point = dict(wanted.decisions)
        sizes = self._sizes(decisions)
        words, text, metrics = self._words(wanted, decisions, sizes)
        reading = self._job.source
        arguments = (
            *(f"-D{one}" for one in reading.defines),
            *(f"-I{one}" for one in reading.include_dirs),
            *(f"-D{name}={value}" for name, value in sizes),
            *words,
            *self._job.ppcg_arguments,
        )
        built = ppcg(
            self._source,
            gpu=self._profile,
            output=own_folder(self._job.folder, wanted.variant),
            ppcg=self._job.ppcg,
            arguments=arguments,
            selects=False,
        )
        if built.program is None:
            raise InputError(*(built.warnings or (_unknown(),)))
        return Made(
            variant=wanted.variant,
            folder=str(built.program),
            sizes=sizes,
            metrics=metrics,
            decided=text,
        )

    def _sizes(self, decisions: Point) -> Sizes:
        known = {parameter.name for parameter in self._session.interface.parameters}
        found = ((name, value) for name, value in decisions.items() if name in known)
        return tuple((name, int(value)) for name, value in found)

    def _words(
        self, wanted: Wanted, decisions: Point, sizes: Sizes
    ) -> tuple[tuple[str, ...], str, Metrics]:
        """Return PPCG's arguments, what they decide in words, and what is expected."""
        tiles, threads = positions(decisions, "tile"), positions(decisions, "threads")
        if wanted.role in ("ours", "paper") and not tiles:
            options = SelectOptions(target="ppcg", objective=self._job.objective)
            if wanted.role == "paper":
                options = SelectOptions(target="ppcg", model="paper")
            source, volume = self._job.source, options.volume_name()
            reading = self._session.reading_at(sizes) if sizes else source.reading()
            session = Session(source.source, reading, cut="ppcg", volume=volume)
            chosen = session.select(self._profile, options)
            said = "PPCG's own sizes" if chosen.keeps_default else chosen.ppcg_sizes
            return chosen.ppcg_arguments, said, predicted_metrics(chosen.kernels)
        maps = []
        if tiles:
            maps.append(f"kernel[i] -> tile[{', '.join(map(str, tiles))}]")
        if threads:
            maps.append(f"kernel[i] -> block[{', '.join(map(str, threads))}]")
        words = [f"--sizes={{ {'; '.join(maps)} }}"] if maps else []
        if "max_shared_memory" in decisions:
            words.append(f"--max-shared-memory={int(decisions['max_shared_memory'])}")
        if decisions.get("unroll_gpu_tile"):
            words.append("--unroll-gpu-tile")
        text = f"tile {'×'.join(map(str, tiles))}" if tiles else "PPCG's own sizes"
        if threads:
            text += f", {'×'.join(map(str, threads))} threads"
        return tuple(words), text, self._expected(tiles, threads, decisions)

    def _expected(
        self, tiles: tuple[int, ...], threads: tuple[int, ...], decisions: Point
    ) -> Metrics:
        """Return what the model expects, nothing where it cannot say."""
        facts = self._session.analysed.facts
        kernels = [(kernel.name, tuple(loop.name for loop in kernel.loops)) for kernel in facts]
        limit = decisions.get("max_shared_memory")
        try:
            choice = TileChoice(label="", positions=tiles)
            found = self._session.predict(
                self._profile,
                CodeRequest(tiles=choice.tiles(kernels), block=threads),
                max_shared_memory=None if limit is None else int(limit),
                unroll_gpu_tile=bool(decisions.get("unroll_gpu_tile")),
            )
        except EatssError:
            return ()
        if found.time_s is None or found.energy_j is None:
            return ()
        return (("predicted_time_s", found.time_s), ("predicted_energy_j", found.energy_j))


def positions(decisions: Point, kind: str) -> tuple[int, ...]:
    """Return sizes by position, without gaps.

    Raises:
        InputError: ``EATSS-W011``, one is missing.
    """
    found = {}
    for name, value in decisions.items():
        match = _PLACED.fullmatch(name)
        if match is not None and match[1] == kind:
            found[int(match[2])] = int(value)
    if sorted(found) != list(range(len(found))):
        raise input_error(
            "EATSS-W011",
            f"{kind} sizes are given for the loops {', '.join(map(str, sorted(found)))} only",
            hint="PPCG takes them by position: tile_0, tile_1, … without a gap",
        )
    return tuple(found[at] for at in sorted(found))


def _unknown() -> Diagnostic:
    return Diagnostic(code="EATSS-W012", message="what PPCG generated cannot be measured")
