"""A number of a card is CUDA's: the variables, the order of the bus, or what CUDA itself says."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import eatss
from eatss.base.diagnostics import InputError
from eatss.cards.detect import CudaOrder, Detection, ask_cuda, detect
from eatss.cards.this_machine import in_order_of_cuda
from eatss.measurement.card import checked_gpus, cuda_order, named_cards
from eatss.measurement.meters import MeterError

if TYPE_CHECKING:
    from tests.measurement.meters.conftest import FakeNvml


@pytest.fixture
def four(fake: FakeNvml) -> FakeNvml:
    fake.count = 4
    fake.instances = {"MIG-5c0f": "GPU-2"}
    return fake


def order(
    nvml: FakeNvml | None, environment: Mapping[str, str], asked: tuple[str, ...] | None = None
) -> CudaOrder:
    return cuda_order(environment, module=nvml, loaded=lambda: None, ask=lambda _: asked)


ALL = ("GPU-0", "GPU-1", "GPU-2", "GPU-3")


@pytest.mark.parametrize(
    ("visible", "cards"),
    [
        ("2,0", ("GPU-2", "GPU-0")),
        (" 3 , 1 ", ("GPU-3", "GPU-1")),
        ("0,2,-1,1", ("GPU-0", "GPU-2")),
        ("0,7,1", ("GPU-0",)),
        ("", ()),
        ("-1", ()),
        ("GPU-3,GPU-1", ("GPU-3", "GPU-1")),
        ("gpu-3", ()),
        ("GPU-", ()),
        ("GPU-9,0", ()),
        ("1,1,2", ("GPU-1",)),
        ("MIG-5c0f", ("GPU-2",)),
        ("MIG-none,0", ()),
        ("MIG-GPU-1/3/0", ("GPU-1",)),
        ("nonsense", ()),
    ],
)
def test_the_variable_hides_and_renumbers(
    four: FakeNvml, visible: str, cards: tuple[str, ...]
) -> None:
    found = order(four, {"CUDA_VISIBLE_DEVICES": visible})
    assert found.cards == cards
    assert f"CUDA_VISIBLE_DEVICES={visible}" in found.how
    assert not found.doubt
    assert four.users == 0


@pytest.mark.parametrize("visible", [None, "1", "1,0", "", "GPU-1", "9", "MIG-5c0f,0"])
def test_auto_and_the_meter_count_alike(four: FakeNvml, visible: str | None) -> None:
    four.names = {"GPU-0": "NVIDIA H200", "GPU-1": "NVIDIA A100"}
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    seen = detect(nvml=four, cupy=SimpleNamespace())
    auto = in_order_of_cuda(seen, Detection(gpus=(), reasons=()), environment, nvml=four)
    assert len(seen.gpus) == 4
    assert tuple(gpu.uuid for gpu in auto.gpus) == order(four, environment).cards


def test_without_the_variable_cards_of_one_kind_are_in_the_order_of_the_bus(
    four: FakeNvml,
) -> None:
    assert order(four, {}).cards == ALL


def test_a_short_uuid_names_the_one_card_that_begins_so(fake: FakeNvml) -> None:
    fake.count = 11  # GPU-1 and GPU-10
    assert order(fake, {"CUDA_VISIBLE_DEVICES": "GPU-10"}).cards == ("GPU-10",)
    assert order(fake, {"CUDA_VISIBLE_DEVICES": "GPU-1"}).cards == ()
    assert order(fake, {"CUDA_VISIBLE_DEVICES": "GPU-2"}).cards == ("GPU-2",)


def test_of_several_kinds_cuda_is_asked_which_is_the_fastest(four: FakeNvml) -> None:
    four.names = {"GPU-0": "NVIDIA T4"}
    asked = ("GPU-1", "GPU-2", "GPU-3", "GPU-0")
    assert order(four, {}, asked).cards == asked
    doubtful = order(four, {})
    assert doubtful.cards == ALL
    assert "counted by their place on the bus" in doubtful.doubt
    by_bus = order(four, {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "3,0"}, asked)
    assert (by_bus.cards, by_bus.doubt) == (("GPU-3", "GPU-0"), "")


def test_cuda_is_asked_once_for_the_same_variables_and_cards(
    four: FakeNvml, monkeypatch: pytest.MonkeyPatch
) -> None:
    four.names = {"GPU-0": "NVIDIA T4"}
    asked: list[str | None] = []

    def ask(environment: Mapping[str, str]) -> tuple[str, ...] | None:
        asked.append(environment.get("CUDA_VISIBLE_DEVICES"))
        return ("GPU-1",) if len(asked) > 1 else None

    monkeypatch.setattr("eatss.cards.detect.ask_cuda", ask)
    monkeypatch.setattr("eatss.cards.detect._KEPT", {})
    for visible in ("0", "0", "0", "1"):
        cuda_order({"CUDA_VISIBLE_DEVICES": visible}, module=four, loaded=lambda: None)
    assert asked == ["0", "0", "1"]  # that it did not answer is not kept
    four.count = 3
    cuda_order({"CUDA_VISIBLE_DEVICES": "1"}, module=four, loaded=lambda: None)
    assert asked == ["0", "0", "1", "1"]


@pytest.mark.parametrize(
    ("visible", "cards"), [("", ()), ("GPU-3,GPU-0", ("GPU-3", "GPU-0")), ("MIG-5c0f", ("GPU-2",))]
)
def test_where_the_variable_has_no_numbers_cuda_is_not_asked(
    four: FakeNvml, visible: str, cards: tuple[str, ...]
) -> None:
    four.names = {"GPU-0": "NVIDIA T4"}
    found = order(four, {"CUDA_VISIBLE_DEVICES": visible}, ("GPU-1",))
    assert (found.cards, found.doubt) == (cards, "")


def test_a_process_of_its_own_asks_with_the_same_variables() -> None:
    words = (sys.executable, "-S", "-c", "import os; print(os.environ['SEEN'])")
    assert ask_cuda({"SEEN": "GPU-a\nGPU-b"}, words) == ("GPU-a", "GPU-b")
    assert ask_cuda({}, words) is None
    assert ask_cuda({}, ("/no/such/program",)) is None


def test_without_the_driver_the_variable_alone_says_it(fake: FakeNvml) -> None:
    fake.failing["nvmlInit"] = 12
    assert order(fake, {"CUDA_VISIBLE_DEVICES": "2,GPU-x"}).cards == (2, "GPU-x")
    with pytest.raises(MeterError):
        order(fake, {})


def test_loaded_frameworks_are_asked(fake: FakeNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = [uuid.UUID(int=number).bytes for number in (7, 3)]
    runtime = SimpleNamespace(
        getDeviceCount=lambda: 2, getDeviceProperties=lambda number: {"uuid": raw[number]}
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    told = tuple(f"GPU-{uuid.UUID(int=number)}" for number in (7, 3))
    assert cuda_order({"CUDA_VISIBLE_DEVICES": "0"}, module=fake).cards == told


@pytest.mark.parametrize("begun", [True, False])
def test_pytorch_is_asked_once_it_uses_cuda(
    fake: FakeNvml, monkeypatch: pytest.MonkeyPatch, begun: bool
) -> None:
    cuda = SimpleNamespace(
        is_initialized=lambda: begun,
        device_count=lambda: 1,
        get_device_properties=lambda _: SimpleNamespace(
            uuid="01234567-89ab-cdef-0123-456789abcdef"
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace())  # broken: the next is asked
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    found = cuda_order({}, module=fake).cards
    assert found == (("GPU-01234567-89ab-cdef-0123-456789abcdef",) if begun else ("GPU-0", "GPU-1"))


def named(gpus: Any, nvml: FakeNvml, **environment: str) -> list[tuple[str, int | str, bool]]:
    found = named_cards(gpus, environment, module=nvml)
    return [(card.name, card.device, bool(card.reason)) for card in found.cards]


def test_cards_are_named_by_number_uuid_or_all(four: FakeNvml) -> None:
    assert named(1, four) == [("card 1", "GPU-1", False)]
    assert named([1, 0], four, CUDA_VISIBLE_DEVICES="3,2") == [
        ("card 1", "GPU-2", False),
        ("card 0", "GPU-3", False),
    ]
    assert named("all", four, CUDA_VISIBLE_DEVICES="3,2") == [
        ("card 0", "GPU-3", False),
        ("card 1", "GPU-2", False),
    ]
    assert named("GPU-2", four, CUDA_VISIBLE_DEVICES="3") == [("card GPU-2", "GPU-2", False)]
    assert named([0, 0, "GPU-0"], four) == [("card 0", "GPU-0", False)]
    assert named([], four) == []


def test_a_card_that_cuda_does_not_see_has_a_reason(four: FakeNvml) -> None:
    (card,) = named_cards(1, {"CUDA_VISIBLE_DEVICES": "3"}, module=four).cards
    assert card.reason == (
        "there is no card 1: CUDA sees 1 card (CUDA's order, CUDA_VISIBLE_DEVICES=3)"
    )
    (below,) = named_cards(-1, {}, module=four).cards
    assert below.reason.startswith("there is no card -1: CUDA sees 4 cards")
    none = named_cards("all", {"CUDA_VISIBLE_DEVICES": ""}, module=four)
    assert (none.cards, none.missing[0].what) == ((), "energy")


def test_numbers_of_any_type_are_numbers() -> None:
    assert checked_gpus(np.arange(2)) == (0, 1)  # type: ignore[arg-type]
    assert checked_gpus(range(1, 3)) == (1, 2)
    assert checked_gpus(np.int64(3)) == 3  # type: ignore[arg-type]
    assert (checked_gpus("all"), checked_gpus([]), checked_gpus("GPU-1")) == ("all", (), "GPU-1")


@pytest.mark.parametrize("wrong", ["alll", [0, "all"], [True], -1, [1.5], [None], b"01"])
def test_what_names_no_card_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"gpus has .* which names no card") as caught:
        checked_gpus(wrong)
    assert caught.value.code == "EATSS-E064"


@pytest.mark.parametrize("wrong", [True, "foo", -1])
def test_a_device_that_names_no_card_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"device has .* which names no card") as caught:
        eatss.energy_meter(device=wrong)
    assert caught.value.code == "EATSS-E064"
