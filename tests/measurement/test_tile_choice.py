"""Tile sizes as users write them."""

from __future__ import annotations

import pytest

from eatss.measurement.options import parse_tile_choice, parse_tile_choices
from tests.refusals import refusing

KERNELS = (("kernel0", ("i", "j", "k")), ("kernel1", ("i", "j")), ("kernel2", ()))


def tiles(text: str) -> object:
    return parse_tile_choice(text).tiles(KERNELS)


def test_selected_leaves_all_sizes_to_the_model() -> None:
    assert tiles("selected") == {}


def test_sizes_go_to_the_loops_of_each_kernel_in_order() -> None:
    assert tiles("32,64,16") == {
        "kernel0": {"i": 32, "j": 64, "k": 16},
        "kernel1": {"i": 32, "j": 64},
    }


def test_one_size_alone_is_for_every_loop() -> None:
    assert tiles("32") == {"kernel0": {"i": 32, "j": 32, "k": 32}, "kernel1": {"i": 32, "j": 32}}


def test_a_kernel_with_more_loops_than_sizes_is_the_users_mistake() -> None:
    with refusing("EATSS-E040") as caught:
        tiles("32,64")
    assert "kernel0 has the loops i, j, k" in str(caught.value)


def test_sizes_by_loop_are_for_all_kernels_or_for_the_one_named_before() -> None:
    assert tiles("i=32,j=64") == {"i": 32, "j": 64}
    assert tiles("i=8,k0:j=32,k=16,k1:j=64") == {
        "i": 8,
        "k0": {"j": 32, "k": 16},
        "k1": {"j": 64},
    }


def test_blanks_do_not_matter() -> None:
    assert parse_tile_choice(" 32, 64 ,16 ").label == "32,64,16"


@pytest.mark.parametrize("text", ["", "32,", "32,x", "-4", "i=", "i=32;j=4", "Selected", "3.5"])
def test_what_is_no_choice_is_refused_with_the_forms_there_are(text: str) -> None:
    with refusing("EATSS-E040") as caught:
        parse_tile_choice(text)
    assert "i=32,j=64" in str(caught.value.diagnostics[0].hint)


def test_the_same_choice_twice_is_refused() -> None:
    with refusing("EATSS-E043"):
        parse_tile_choices(["32,64", "32, 64"])
