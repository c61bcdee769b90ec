"""Which chunks a list shows: filters and search over ``console.chunks``. Pure functions; nothing is copied
that can be long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from console.chunks import ChunkBook, ChunkState, Trait


class Filter(IntEnum):
    """The kinds of chunks that a list may be narrowed to."""

    ALL = 0
    IN_FLIGHT = 1
    LAPSED = 2
    DUPLICATED = 3
    SET_ASIDE = 4


FILTER_WORDS: Final = {
    Filter.ALL: "all",
    Filter.IN_FLIGHT: "in flight",
    Filter.LAPSED: "lapsed",
    Filter.DUPLICATED: "duplicated",
    Filter.SET_ASIDE: "set aside",
}
STATE_WORDS: Final = {
    ChunkState.UNKNOWN: "unknown",
    ChunkState.IN_FLIGHT: "in flight",
    ChunkState.DUPLICATED: "duplicated",
    ChunkState.DONE: "done",
    ChunkState.GIVEN_BACK: "given back",
}
TRAIT_WORDS: Final = {
    Trait.LAPSED: "lapsed",
    Trait.DUPLICATED: "duplicated",
    Trait.SET_ASIDE: "set aside",
    Trait.SPLIT: "split",
    Trait.REFUSED: "refused",
    Trait.REOPENED: "reopened",
}
_TRAITS: Final = {
    Filter.LAPSED: Trait.LAPSED,
    Filter.DUPLICATED: Trait.DUPLICATED,
    Filter.SET_ASIDE: Trait.SET_ASIDE,
}


def chosen(book: ChunkBook, kind: Filter) -> Sequence[int]:
    """The numbers of the chunks of a kind."""
    if kind is Filter.ALL:
        return range(len(book))
    if kind is Filter.IN_FLIGHT:
        return list(book.live)
    return book.having[_TRAITS[kind]]


def number_of(book: ChunkBook, kind: Filter) -> int:
    """How many chunks are of a kind."""
    return len(book.live) if kind is Filter.IN_FLIGHT else len(chosen(book, kind))


def matching(book: ChunkBook, numbers: Sequence[int], needle: str) -> Iterator[int]:
    """Those with ``needle`` (in lower case) in their id, their state, what happened to them, or the name of
    a worker that had a claim."""
    by_worker = [needle in name.casefold() for name in book.workers]
    by_state = {state: needle in words for state, words in STATE_WORDS.items()}
    traits = sum(trait for trait, words in TRAIT_WORDS.items() if needle in words)
    somebody = any(by_worker)
    for number in numbers:
        told = book.traits[number] & traits or by_state[ChunkState(book.state[number])]
        if told or needle in f"c{number}" or (somebody and _is_by(book, number, needle, by_worker)):
            yield number


def _is_by(book: ChunkBook, number: int, needle: str, by_worker: Sequence[bool]) -> bool:
    story = book.story(number)
    if story is None:
        return bool(book.state[number]) and by_worker[book.worker[number]]
    return any(needle in attempt.worker.casefold() for attempt in story.attempts.values())
