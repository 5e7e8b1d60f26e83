"""Where is a stream of bytes cut into chunks? Where its content says so, so that a change moves only the cuts near it.

A cut is behind the first window of 32 bytes, at least LEAST_BYTES into the chunk, whose hash is above a threshold. The
hash is a sum of products of four words of 8 bytes, because numpy multiplies a gigabyte of them in a second; FastCDC's
table of random numbers takes five times as long there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

# A chunk has a MiB on average. A changed byte changes one chunk or two, and the largest two are below 4 MB.
LEAST_BYTES, MOST_BYTES = 256 * 1024, 1_792 * 1024
_WINDOW_BYTES = 32
_ABOVE = np.uint64(2**64 - 2**44)  # one window in 2**20; not below, where zeros are
_FACTORS = tuple(np.uint64(each) for each in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
_BLOCK_BYTES = 256 * 1024  # that are looked at together: more of them do not stay in the processor's cache


class Chunker:
    """Takes bytes in any pieces, and gives chunks that depend on the whole stream alone."""

    def __init__(self) -> None:
        self._held = np.empty(4 * MOST_BYTES, dtype=np.uint8)
        self._begin = self._end = 0

    def room(self) -> memoryview:
        """Where the next bytes are written, at least MOST_BYTES long; `taken` says how many were."""
        if self._begin:
            left = self._end - self._begin
            self._held[:left] = self._held[self._begin : self._end].copy()
            self._begin, self._end = 0, left
        return self._held.data[self._end :]

    def taken(self, count: int) -> Iterator[bytes]:
        """The chunks that are complete."""
        self._end += count
        while self._end - self._begin >= MOST_BYTES:
            yield self._cut()

    def rest(self) -> Iterator[bytes]:
        """The chunks of what is left, at the stream's end."""
        while self._end > self._begin:
            yield self._cut()

    def _cut(self) -> bytes:
        held = self._held[self._begin : min(self._end, self._begin + MOST_BYTES)]
        size = cut_after(held)
        self._begin += size
        return held[:size].tobytes()


def chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks of a stream in memory."""
    cutter = Chunker()
    for piece in pieces:
        for begin in range(0, len(piece), MOST_BYTES):
            part = piece[begin : begin + MOST_BYTES]
            cutter.room()[: len(part)] = part
            yield from cutter.taken(len(part))
    yield from cutter.rest()


def cut_after(held: npt.NDArray[np.uint8]) -> int:
    """The length of the chunk at the beginning of these bytes, which are MOST_BYTES or the last ones."""
    for begin in range(LEAST_BYTES - _WINDOW_BYTES, len(held), _BLOCK_BYTES):
        windows = [
            _first_window(held[begin + shift : begin + _BLOCK_BYTES + _WINDOW_BYTES]) + shift for shift in range(8)
        ]
        if (first := min(windows)) < _BLOCK_BYTES:
            return begin + first + _WINDOW_BYTES
    return len(held)


def _first_window(held: npt.NDArray[np.uint8]) -> int:
    """Where the first window with such a hash begins, of those at multiples of 8; _BLOCK_BYTES for none."""
    words = held[: len(held) // 8 * 8].view("<u8")
    if len(words) < _WINDOW_BYTES // 8:
        return _BLOCK_BYTES
    pairs = words[:-1] * _FACTORS[0] + words[1:] * _FACTORS[1]
    found = np.flatnonzero(pairs[:-2] + pairs[2:] * _FACTORS[2] > _ABOVE)
    return int(found[0]) * 8 if len(found) else _BLOCK_BYTES
