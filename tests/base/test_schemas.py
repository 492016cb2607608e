"""What is written keeps to the published JSON Schemas, and what is no document does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import eatss
from eatss.base.codec import decode, encode
from eatss.base.diagnostics import InputError
from eatss.base.schemas import PUBLISHED
from eatss.base.shipped import data_directory
from eatss.measurement.measurement import Measurement
from tests.end_to_end.in_process import eatss as command
from tests.examples import examples

KERNELS = data_directory("kernels")
EVERYTHING = list(HealthCheck)


def faults(name: str, document: Any) -> list[str]:
    """Return what the published schema has against a document."""
    found = Draft202012Validator(eatss.schema(name)).iter_errors(document)
    return [f"{error.json_path}: {error.message}" for error in found]


def plain(noun: Any) -> Any:
    return json.loads(json.dumps(encode(noun)))


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_schema_is_one_and_describes_its_document(name: str) -> None:
    found = eatss.schema(name)
    Draft202012Validator.check_schema(found)
    assert found["title"] == PUBLISHED[name].partition(":")[2]
    assert found["description"]
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("kernel", "options"),
    [("gemm", {})],
)
def test_a_selection_keeps_to_its_schema(kernel: str, options: dict[str, Any]) -> None:
    selection = eatss.select(KERNELS / f"{kernel}.c", gpu="h200", **options)
    assert not faults("select", plain(selection))


@pytest.mark.parametrize("kernel", ["gemm", "seidel-2d"])
def test_a_folder_keeps_to_the_schemas_of_plan_and_recipe(kernel: str, tmp_path: Path) -> None:
    eatss.codegen(KERNELS / f"{kernel}.c", gpu="h200", output=tmp_path / kernel)
    plan = json.loads((tmp_path / kernel / "plan.json").read_text())
    assert not faults("plan", plan)
    assert not faults("recipe", plan["recipe"])


def test_whatever_the_types_allow_keeps_to_the_schema_and_is_read() -> None:
    validator = Draft202012Validator(eatss.schema("measurement"))

    @settings(max_examples=examples(5), deadline=None, suppress_health_check=EVERYTHING)
    @given(st.builds(Measurement, schema_version=st.just(1)))
    def check(noun: Measurement) -> None:
        document = plain(noun)
        assert not list(validator.iter_errors(document))
        assert plain(decode(Measurement, document)) == document or "NaN" in json.dumps(document)

    check()


DAMAGE: list[Callable[[dict[str, Any]], object]] = [
    (lambda d: d.update(schema_version=4)),
    (lambda d: d.pop("schema_version")),
    (lambda d: d.update(comment="mine")),
    (lambda d: d["kernels"][0].update(optimal="surely")),
    (lambda d: d["kernels"][0]["tile_sizes"].update(i="many")),
    (lambda d: d["kernels"][0]["usage"]["occupancy"].update(mine=1)),
    (lambda d: d["kernels"][0].update(loops="ijk")),
    (lambda d: d["options"].pop("model") and d["options"].update(modle="eatss")),
]


@pytest.fixture(scope="module")
def selection() -> eatss.Selection:
    return eatss.select(KERNELS / "gemm.c", gpu="h200")


@pytest.mark.parametrize("damage", DAMAGE)
def test_schema_and_reader_refuse_the_same(
    selection: eatss.Selection, damage: Callable[[dict[str, Any]], object]
) -> None:
    document = plain(selection)
    damage(document)
    assert faults("select", document)
    with pytest.raises(InputError):
        eatss.Selection.from_dict(document)


def test_a_prediction_without_parts_is_read(selection: eatss.Selection) -> None:
    document = plain(selection)
    document["kernels"][0]["predicted"]["times_s"] = {}
    assert eatss.Selection.from_dict(document).to_dict()["kernels"][0]["predicted"]["bound"] == ""


def test_an_unknown_schema_is_told_with_the_nearest_name() -> None:
    with pytest.raises(InputError, match="EATSS-C017") as caught:
        eatss.schema("selct")
    assert caught.value.diagnostics[0].hint == "did you mean select?"


def test_the_command_lists_and_prints_schemas() -> None:
    assert command("schema").stdout.split() == [*PUBLISHED]
    assert json.loads(command("schema", "plan").stdout) == eatss.schema("plan")
