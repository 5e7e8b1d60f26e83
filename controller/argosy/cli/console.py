"""The console that rich writes to. It takes text literally: no markup, no emoji codes, no control characters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from argosy.cli.own_name import as_typed
from argosy.figures.markup import visible


class PlainText(Text):
    """Text with styles and visible control characters, so that it is as wide as it looks."""

    def __init__(self, text: str = "", *arguments: Any, **options: Any) -> None:
        super().__init__(visible(text), *arguments, **options)

    def append(self, text: Text | str, style: Any = None) -> Self:
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


_COMMANDS = ("next: ", "or: ", "then, ")


def _is_step(printed: Any) -> bool:
    return isinstance(printed, str) and any(each in printed for each in _COMMANDS)


class PlainTextConsole(Console):
    """Styles come from arguments and `PlainText`, never from the printed text: `[x9.large]` is not looked up."""

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def print(self, *objects: Any, **options: Any) -> None:
        """Nothing is cropped. A command to type next works as it stands, and is one line, however narrow the terminal
        is: it is copied."""
        if objects and all(isinstance(each, str) and each.lstrip().startswith(_COMMANDS) for each in objects):
            options.setdefault("soft_wrap", True)
        options.setdefault("crop", False)
        super().print(*(as_typed(each) if _is_step(each) else each for each in objects), **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Strings, as lines and in tables."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Everything that is printed passes here; rich's own movements of the cursor are marked as control."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)
