"""Registries: what is built in, registered, or offered by an installed package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eatss.base.diagnostics import InputError
from eatss.base.extensions import Registry
from tests import offered
from tests.refusals import refusing

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Return what puts a package with one entry point where Python finds it."""

    def put(entry: str, module: str) -> None:
        offered.install(
            tmp_path,
            monkeypatch,
            numbers(),
            entry=entry,
            files={"offered.py": module},
        )

    return put


def numbers() -> Registry[int]:
    return Registry("eatss.numbers", "number", {"one": 1}, of=int)


def test_what_is_registered_is_found() -> None:
    registry = numbers()
    registry.register("two", 2)
    assert registry.names() == ("one", "two")
    assert registry.get("two") == 2
    registry.remove("two")
    assert registry.names() == ("one",)


def test_a_package_offers_one(install: Install) -> None:
    install("three = offered:three", "three = 3\n")
    registry = numbers()
    assert registry.names() == ("one", "three")
    assert registry.get("three") == 3


def test_a_name_may_be_where_it_stands(install: Install) -> None:
    install("three = offered:three", "three = 3\nfour = 4\n")
    registry = numbers()
    assert registry.get("offered:four") == 4
    assert registry.version("offered:four") is None
    with pytest.raises(InputError, match="offered:five cannot be loaded") as raised:
        numbers().get("offered:five")
    hint = raised.value.diagnostics[0].hint
    assert hint == "mend the package, or name one of: one, three"


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("three = 'three'\n", "of the type str, not int"),
        ("raise OSError('gone')\n", "cannot be loaded: OSError: gone"),
        ("", "cannot be loaded: AttributeError"),
    ],
)
def test_what_a_package_offers_is_checked(install: Install, module: str, said: str) -> None:
    install("three = offered:three", module)
    with refusing("EATSS-X003", said):
        numbers().get("three")


def test_names_are_taken_once(install: Install) -> None:
    install("three = offered:three", "three = 3\n")
    for name in ("one", "three"):
        with refusing("EATSS-X003", "is there already"):
            numbers().register(name, 4)


def test_an_unknown_name_says_what_there_is() -> None:
    with pytest.raises(InputError) as raised:
        numbers().get("onee")
    assert raised.value.diagnostics[0].hint == "did you mean one?"
    with pytest.raises(InputError) as raised:
        numbers().get("seventeen")
    assert raised.value.diagnostics[0].hint == "choose one of: one"


def test_functions_are_callable() -> None:
    registry: Registry[Callable[[], int]] = Registry("eatss.numbers", "number", {})
    with pytest.raises(InputError, match="of the type int, not a function"):
        registry.register("four", 4)  # type: ignore[arg-type]
    registry.register("four", lambda: 4)
    assert registry.get("four")() == 4
