"""HTML and SVG from text in which nothing from outside can be markup.

Text that is not `Markup` is escaped, and its control characters are shown as signs: a task's last line can neither
begin an element, nor turn the direction of writing around it. Escape sequences in it would run in the operator's
terminal, so the command shows them by the same function.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

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


_VOID = frozenset({"br", "circle", "input", "line", "link", "meta", "path", "rect"})  # ours have no content


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Markup | None | Iterable["Content"]


def element(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """An element. A final `_` is dropped from an attribute's name, another one is a hyphen; False and None leave the
    attribute out, True gives it no value. None among the content is nothing."""
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID and not content:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(content)}</{name}>")


def joined(content: Content) -> Markup:
    """All of it in a row, escaped where it is not markup."""
    if content is None:
        return Markup("")
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return Markup(escape(visible(content)))
    return Markup("".join(joined(each) for each in content))


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:.6g}" if isinstance(value, float) else escape(visible(str(value)))
    return f' {name}="{text}"'
