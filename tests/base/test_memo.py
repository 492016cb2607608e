"""What is remembered of nouns is made once, for each noun and all that is given with it."""

from __future__ import annotations

from eatss.base.memo import Memo, remembered


class Noun:
    def __init__(self) -> None:
        self.once = Memo()


def test_a_result_is_made_once_for_a_noun_and_its_arguments() -> None:
    made: list[tuple[Noun, int]] = []

    @remembered
    def both(noun: Noun, number: int) -> list[int]:
        made.append((noun, number))
        return [number]

    @remembered
    def other(noun: Noun, number: int) -> list[int]:
        return [-number]

    first, then = Noun(), Noun()
    assert both(first, 1) is both(first, 1)
    assert both(first, 2) == [2]
    assert both(then, 1) == [1]
    assert other(first, 1) == [-1]
    assert made == [(first, 1), (first, 2), (then, 1)]
