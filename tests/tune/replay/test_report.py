"""What a replay prints."""

from __future__ import annotations

import json
from dataclasses import replace

from jsonschema import Draft202012Validator

import eatss
from eatss.cli.sweep import replay_command
from eatss.tune.strategies import Budget
from tests.tune.replay.sweeps import random_sweep, row, sweep

ROWS = [
    row(0, 0, 1.5, role="default", metrics=(("predicted_time_s", 1.4),)),
    row(0, 1, 1.02, role="ours", metrics=(("predicted_time_s", 1.0),)),
    row(0, 2, 1.0),
    row(0, 3, None, role="paper"),
]


limit = Budget.parse


def test_a_replay_as_a_table() -> None:
    assert replay_command(sweep(ROWS), "exhaustive, model", 2, limit("4"), "time", "table") == (
        "made up (cuda) on Made Up 100\n"
        "4 variants, 1 of them failed; least time 1.000 s\n"
        "Best found, in % above the least, after a share of 4 variants:\n"
        "the middle of 2 seeds. near: variants until within 5 %.\n"
        "\n"
        "  strategy    10 %  25 %  50 %  100 %  near  runs near\n"
        "  exhaustive     -  50.0   2.0    0.0     2  2 of 2\n"
        "  model          -   2.0   2.0    0.0     1  2 of 2\n"
        "\n"
        "  variant             above    rank\n"
        "  the default          50.0  3 of 3\n"
        "  that of eatss         2.0  2 of 3\n"
        "  the paper's choice      -  failed\n"
        "\n"
        "The model's first variant is 2.0 % above the least.\n"
    )


def test_a_replay_as_json() -> None:
    document = json.loads(replay_command(sweep(ROWS), "random", 3, None, "energy", "json"))
    Draft202012Validator(eatss.schema("replay")).validate(document)
    assert document["best"] == 300.0
    assert [one["strategy"] for one in document["runs"]] == ["random"] * 3
    assert document["summaries"][0]["regrets"][-1]["median"] == 0


def test_a_table_fits_into_80_columns() -> None:
    made = random_sweep(8, seed=2)
    text = replay_command(
        made, "random,local,model,exhaustive", 20, limit("30m,50"), "edp", "table"
    )
    assert max(map(len, text.splitlines())) <= 80
    failed = [replace(one, status="timeout") for one in made.rows[:-1]]
    text = replay_command(
        sweep([*failed, made.rows[-1]]), "exhaustive", 1, limit("3"), "time", "table"
    )
    assert "exhaustive     -     -     -      -     -  0 of 1" in text


def test_what_is_beside_the_space_or_of_another_size_is_told() -> None:
    beside = replace(row(0, 0, 0.8, role="ours"), variant="x", values=(("role", "ours"),))
    other = row(0, 9, 0.1, sizes=(("N", 64),))
    rows = [replace(one, sizes=(("N", 4096),)) for one in (*ROWS[:1], *ROWS[2:], beside)]
    text = replay_command(sweep([*rows, other]), "exhaustive", 1, None, "time", "table")
    assert "At N=4096 alone; 1 other size is left out." in text
    assert "  that of eatss       -20.0  not in the space\n" in text
