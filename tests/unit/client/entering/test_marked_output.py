"""A session's output is reduced to the command's output, in whatever pieces it arrives."""

from __future__ import annotations

import pytest

from argosy.client.entering.plugin import MarkedOutput

BEGIN, END = b"argosy-t0-begins\r\n", b"argosy-t0-ended-"
SESSION = b"\r\nStarting session\r\n" + BEGIN + b"a\r\nargosy-t0-no\r\nb" + END + b"12.\r\nExiting session\r\n"


def heard(session: bytes, size: int, *, is_terminal: bool = False) -> tuple[bytes, int | None]:
    shown: list[bytes] = []
    marks = MarkedOutput("t0", shown.append, is_terminal=is_terminal)
    for start in range(0, len(session), size):
        marks.hear(session[start : start + size])
    marks.close()
    return b"".join(shown), marks.code


@pytest.mark.parametrize("size", [*range(1, 40), 1000])
def test_pieces_of_any_size_give_the_same(size: int) -> None:
    assert heard(SESSION, size) == (b"a\nargosy-t0-no\nb", 12)
    assert heard(SESSION, size, is_terminal=True) == (b"a\r\nargosy-t0-no\r\nb", 12)


def test_what_comes_is_shown_as_it_comes() -> None:
    shown: list[bytes] = []
    marks = MarkedOutput("t0", shown.append, is_terminal=True)
    marks.hear(b"Starting\r\n" + BEGIN + b"Password: ")
    assert shown == [b"Password: "]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_session_that_is_cut_shows_all_that_came_and_has_no_code(size: int) -> None:
    assert heard(BEGIN + b"half" + END[:6], size) == (b"half" + END[:6], None)
    assert heard(BEGIN + b"half" + END + b"1", size) == (b"half" + END + b"1", None)
    assert heard(b"Cannot start session: EOF\r\n", size) == (b"Cannot start session: EOF\n", None)


def test_bytes_that_are_no_text_come_through() -> None:
    assert heard(BEGIN + bytes(range(256)) + END + b"0.", 5)[0] == bytes(range(256))
