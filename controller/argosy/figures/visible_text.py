"""Text from outside (tasks, files, AWS), with its control characters shown and never obeyed.

A line that a task prints may hold escape sequences, which would run in the operator's terminal, and marks that turn the
direction of writing, which deceive the reader of a page as well.
"""

from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1; the marks and overrides of writing direction; halves of surrogate pairs, which
# cannot be written at all.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_PICTURES = 0x2400  # the block Control Pictures: a sign for each of C0, as wide as a letter
_DELETE, _DELETE_PICTURE = 0x7F, "\u2421"
_NO_PICTURE = "\ufffd"


def visible(text: str) -> str:
    """The text with a sign of one column in place of each control character but tab and newline."""
    return _CONTROL.sub(_picture, text)


def _picture(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(_PICTURES + code)
    return _DELETE_PICTURE if code == _DELETE else _NO_PICTURE
