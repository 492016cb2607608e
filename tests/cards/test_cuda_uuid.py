"""The UUID of a card: from all its bytes, or from NVML where CuPy tells only the first ones."""

from __future__ import annotations

import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eatss.cards.detect import cuda_uuid

BYTES = bytes.fromhex("c1a5e9370042d8b16f20917e3b55aa04")
UUID = "GPU-c1a5e937-0042-d8b1-6f20-917e3b55aa04"
SLOT = "00000000:3b:00.0"
PROPERTIES = {"pciDomainID": 0, "pciBusID": 0x3B, "pciDeviceID": 0}


@dataclass
class Nvml:
    """NVML that knows cards by their slots; ``begun`` counts those who use it."""

    cards: dict[str, str | bytes] = field(default_factory=lambda: {SLOT: UUID})
    starts: bool = True
    begun: int = 0
    asked: list[str] = field(default_factory=list)

    def nvmlInit(self) -> None:
        if not self.starts:
            raise RuntimeError("Driver Not Loaded")
        self.begun += 1

    def nvmlShutdown(self) -> None:
        self.begun -= 1

    def nvmlDeviceGetHandleByPciBusId(self, slot: str) -> str:
        self.asked.append(slot)
        if slot not in self.cards:
            raise KeyError(slot)
        return slot

    def nvmlDeviceGetUUID(self, handle: str) -> str | bytes:
        return self.cards[handle]


def told(raw: bytes | None, nvml: Nvml, **slot: Any) -> str | None:
    found = cuda_uuid({"uuid": raw} | PROPERTIES | slot, nvml)
    assert nvml.begun == 0  # whoever starts NVML shuts it down
    return found


@given(st.binary(min_size=16, max_size=16))
def test_all_bytes_are_a_uuid_and_nobody_is_asked(raw: bytes) -> None:
    nvml = Nvml()
    assert told(raw, nvml) == f"GPU-{uuid.UUID(bytes=raw)}"
    assert nvml.asked == []


def test_a_uuid_is_spelt_as_nvml_spells_it() -> None:
    assert cuda_uuid({"uuid": BYTES}) == UUID


def test_bytes_up_to_a_zero_are_completed_by_the_card_in_the_slot() -> None:
    nvml = Nvml()
    assert told(BYTES.partition(b"\0")[0], nvml) == UUID
    assert nvml.asked == [SLOT]
    assert told(BYTES.partition(b"\0")[0], Nvml({SLOT: UUID.encode()})) == UUID


@given(st.binary(min_size=16, max_size=16), st.integers(0, 15))
def test_any_beginning_is_completed(raw: bytes, length: int) -> None:
    whole = f"GPU-{uuid.UUID(bytes=raw)}"
    assert told(raw[:length], Nvml({SLOT: whole})) == whole


def test_a_slot_is_written_with_all_its_parts() -> None:
    nvml = Nvml({"0000000a:c1:1f.0": UUID})
    assert told(BYTES[:4], nvml, pciDomainID=10, pciBusID=0xC1, pciDeviceID=31) == UUID


@pytest.mark.parametrize("raw", [b"\xc2", BYTES[:4] + b"\x01", BYTES[1:5]])
def test_a_card_in_the_slot_whose_uuid_begins_otherwise_is_another(raw: bytes) -> None:
    assert told(raw, Nvml()) is None


def test_an_empty_slot_is_none_and_nvml_is_shut_down() -> None:
    assert told(BYTES[:4], Nvml({})) is None


def test_nvml_that_does_not_start_is_none() -> None:
    nvml = Nvml(starts=False)
    assert told(BYTES[:4], nvml) is None
    assert nvml.asked == []


def test_without_nvml_a_beginning_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert cuda_uuid({"uuid": BYTES[:4]} | PROPERTIES) is None
    assert cuda_uuid({"uuid": BYTES} | PROPERTIES) == UUID


def test_nvml_is_imported_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", Nvml())
    assert cuda_uuid({"uuid": BYTES[:4]} | PROPERTIES) == UUID


@pytest.mark.parametrize("missing", list(PROPERTIES))
def test_a_card_that_tells_no_slot_is_none(missing: str) -> None:
    nvml = Nvml()
    assert told(BYTES[:4], nvml, **{missing: None}) is None
    assert nvml.asked == []


def test_a_card_that_tells_no_byte_is_the_one_in_its_slot() -> None:
    assert told(b"", Nvml()) == UUID
    assert told(None, Nvml()) == UUID
    assert cuda_uuid({}, Nvml()) is None
