"""Whoever waits is told how far it is, and nobody else is."""

from __future__ import annotations

import io

from console.waiting import Waiting


def said(moments: list[tuple[float, float]], *, terminal: bool) -> str:
    """What is written when so far (the second) at such a time (the first)."""
    stream, clock = io.StringIO(), [0.0]
    line = Waiting("reading film.ts", stream, terminal=terminal, now=lambda: clock[0])
    for clock[0], fraction in moments:
        line(fraction)
    line.close()
    return stream.getvalue()


def test_what_is_over_soon_says_nothing() -> None:
    assert said([(0.5, 0.3), (1.9, 0.99)], terminal=True) == ""
    assert said([(9.9, 0.99)], terminal=False) == ""


def test_a_terminal_has_one_line_that_is_gone_at_the_end() -> None:
    written = said([(2.1, 0.1), (2.15, 0.11), (2.4, 0.2)], terminal=True)
    assert written == "\r\x1b[Kreading film.ts: 10 %\r\x1b[Kreading film.ts: 20 %\r\x1b[K"


def test_a_fraction_that_falls_begins_the_next_pass() -> None:
    written = said([(1.0, 0.6), (1.5, 0.1), (2.5, 0.2)], terminal=True)
    assert written == "\r\x1b[Kreading film.ts, pass 2: 20 %\r\x1b[K"


def test_a_file_gets_a_line_every_ten_seconds() -> None:
    written = said([(second, second / 40) for second in range(1, 40)], terminal=False)
    assert written == "reading film.ts: 25 %\nreading film.ts: 50 %\nreading film.ts: 75 %\n"


def test_what_goes_on_once_all_is_read_has_its_own_words() -> None:
    stream, clock = io.StringIO(), [0.0]
    line = Waiting("reading film.ts", stream, terminal=False, now=lambda: clock[0], then="trying the encoder")
    for clock[0] in (10.0, 20.0):
        line(1.0)
    assert stream.getvalue() == "reading film.ts: trying the encoder\n" * 2
