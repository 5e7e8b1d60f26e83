"""Where a stream is cut, and what a change moves."""

from __future__ import annotations

import random

import numpy as np
import pytest

from argosy.client.inputs.chunker import LEAST_BYTES, MOST_BYTES, chunks

DATA = np.random.default_rng(7).bytes(6_000_000)


def cut(data: bytes) -> list[bytes]:
    return list(chunks([data]))


def test_chunks_are_the_stream_and_within_their_bounds() -> None:
    found = cut(DATA)
    assert b"".join(found) == DATA
    assert all(LEAST_BYTES <= len(each) <= MOST_BYTES for each in found[:-1])
    assert len(found) > 3


def test_the_pieces_that_a_stream_comes_in_change_no_cut() -> None:
    draw, begin, pieces = random.Random(1), 0, []
    while begin < len(DATA):
        size = draw.choice([1, 77, 10_000, 700_000])
        pieces.append(DATA[begin : begin + size])
        begin += size
    assert list(chunks(pieces)) == cut(DATA)


@pytest.mark.parametrize("place", [0, 1, LEAST_BYTES, 2_500_000, 5_999_999])
@pytest.mark.parametrize("change", [b"", b"\x00", b"inserted"])
def test_a_small_change_moves_few_chunks(place: int, change: bytes) -> None:
    changed = cut(DATA[:place] + change + DATA[place + 1 :])
    new = set(changed) - set(cut(DATA))
    assert sum(map(len, new)) < 4_000_000
    assert len(new) <= 3


@pytest.mark.parametrize("data", [b"", b"x", bytes(5_000_000), b"abcd" * 1_000_000], ids=len)
def test_a_stream_without_places_to_cut_is_cut_at_the_most(data: bytes) -> None:
    found = cut(data)
    assert b"".join(found) == data
    assert [len(each) for each in found[:-1]] == [MOST_BYTES] * (len(data) // MOST_BYTES)


def test_the_cuts_are_those_of_every_earlier_version() -> None:
    """Another version that cuts elsewhere sends everything again."""
    assert [len(each) for each in cut(DATA)] == [534634, 697308, 1835008, 301624, 968151, 1193605, 469670]
