from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eatss.measurement import (
    comparison_from_dict,
    comparison_to_dict,
    measurement_from_dict,
    measurement_to_dict,
)
from eatss.measurement.api import compare, measure_variants
from eatss.measurement.measurement import SCHEMA_VERSION, Comparison, Measurement
from eatss.measurement.options import MeasureOptions, Variant
from tests.measurement.scripted_card import CardScript, Folders, ScriptedCard
from tests.refusals import refusing


def through_text(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document, allow_nan=False))
    return found


@pytest.fixture(scope="module")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    folders = Folders(tmp_path_factory.mktemp("programs"))
    variants = [
        folders.variant("a", noise=0.002),
        folders.variant("b", noise=0.002, overwrites=True, drifts_after=3, restore_s=0.001),
        folders.variant("c", fails_at="window", fails_in_window=2),
        Variant(label="d", directory=None, rejection="no tile sizes fit"),
    ]
    card = ScriptedCard(script=CardScript())
    return compare(measure_variants(variants, MeasureOptions(), card=card), "a")


def test_a_comparison_survives_json(comparison: Comparison) -> None:
    assert comparison_from_dict(through_text(comparison_to_dict(comparison))) == comparison


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(measurement=st.builds(Measurement, schema_version=st.just(SCHEMA_VERSION)))
def test_any_measurement_survives_json(measurement: Measurement) -> None:
    text = json.dumps(measurement_to_dict(measurement))
    assert text.startswith('{"schema_version"')
    found = measurement_from_dict(json.loads(text))
    assert json.dumps(measurement_to_dict(found)) == text
    if "NaN" not in text:
        assert found == measurement


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"status": "fine"}, "'fine' is none of"),
        ({"time_s": "fast"}, "'fast' is no float"),
        ({"time_s": True}, "True is no float"),
        ({"windows": 3}, "3 is no list"),
        ({"provenance": None}, "None is no object"),
    ],
)
def test_damage_is_told(comparison: Comparison, changes: dict[str, Any], said: str) -> None:
    document = measurement_to_dict(comparison.row("a").measurement)
    with refusing("EATSS-E070") as caught:
        measurement_from_dict({**document, **changes})
    assert said in str(caught.value)
