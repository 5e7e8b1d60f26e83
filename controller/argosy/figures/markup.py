"""HTML and SVG from text in which nothing from outside can be markup.

Text that is not `Markup` is escaped, and its control characters are shown as signs: a task's last line can neither
begin an element, nor turn the direction of writing around it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from argosy.figures.visible_text import visible

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
