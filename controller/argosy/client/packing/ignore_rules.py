"""Which files of a folder do `.gitignore` and `.argosyignore` leave out? By git's rules, pattern by pattern.

`.argosyignore` has the same form and is read after `.gitignore`, so that it can take back exclusions. As in git, the
files of a folder deeper down decide first, and files in an ignored folder cannot be taken back. Whether git tracks
a file does not matter: only the patterns do. Names and patterns are bytes, as they are to git. https://git-
scm.com/docs/gitignore; the details are those of git's wildmatch.c and dir.c.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

NAMES = (".gitignore", ".argosyignore")
_CLASSES = {
    b"alnum": b"0-9A-Za-z",
    b"alpha": b"A-Za-z",
    b"blank": b" \t",
    b"cntrl": b"\x00-\x1f\x7f",
    b"digit": b"0-9",
    b"graph": b"!-~",
    b"lower": b"a-z",
    b"print": b" -~",
    b"punct": b"!-/:-@\\[-`{-~",
    b"space": b" \t\n\v\f\r",
    b"upper": b"A-Z",
    b"xdigit": b"0-9A-Fa-f",
}


class _NeverMatches(Exception):
    """The pattern is malformed: git ignores it."""


@dataclass(frozen=True)
class Pattern:
    """One line. anchored: it applies to the path from its file's folder; otherwise to the name alone.

    where: its file, line and text, for people.
    """

    text: bytes
    ignores: bool
    folders_only: bool
    anchored: bool
    where: str = ""

    @classmethod
    def parse(cls, line: bytes, where: str = "") -> Pattern | None:
        """None for comments and blank lines."""
        if line.startswith(b"#"):
            return None
        line = _without_trailing_spaces(line.removesuffix(b"\r"))
        ignores = not line.startswith(b"!")
        text = line if ignores else line[1:]
        folders_only = text.endswith(b"/")
        text = text[:-1] if folders_only else text
        return cls(text, ignores, folders_only, b"/" in text, where) if text else None

    @cached_property
    def regex(self) -> re.Pattern[bytes] | None:
        """None for a pattern that is malformed."""
        try:
            return re.compile(_translated(self.text.removeprefix(b"/"), self.anchored), re.DOTALL)
        except _NeverMatches:
            return None

    def matches(self, path: bytes, is_folder: bool) -> bool:
        """path: from the folder of the pattern's file."""
        if self.regex is None or (self.folders_only and not is_folder):
            return False
        return self.regex.fullmatch(path if self.anchored else path.rpartition(b"/")[2]) is not None


def _without_trailing_spaces(line: bytes) -> bytes:
    """Spaces at the end count only behind a backslash."""
    kept = line.rstrip(b" ")
    backslashes = len(kept) - len(kept.rstrip(b"\\"))
    return kept + b" " if backslashes % 2 and len(kept) < len(line) else kept


def _translated(glob: bytes, is_path: bool) -> bytes:
    """A regular expression for the whole path or name. Raises _NeverMatches."""
    found, place = b"", 0
    while place < len(glob):
        char = glob[place : place + 1]
        if char == b"*":
            piece, place = _stars(glob, place, is_path)
        elif char == b"?":
            piece, place = b"[^/]", place + 1
        elif char == b"[":
            piece, place = _bracket(glob, place)
        else:
            place += char == b"\\"
            if place == len(glob):
                raise _NeverMatches
            piece, place = re.escape(glob[place : place + 1]), place + 1
        found += piece
    return found


def _stars(glob: bytes, start: int, is_path: bool) -> tuple[bytes, int]:
    end = start
    while glob[end : end + 1] == b"*":
        end += 1
    whole = start == 0 or glob[start - 1 : start] == b"/"
    if not is_path or end - start < 2 or not whole:
        return b"[^/]*", end
    if end == len(glob):
        return b".*", end
    return (b"(?:.*/)?", end + 1) if glob[end : end + 1] == b"/" else (b"[^/]*", end)


def _bracket(glob: bytes, start: int) -> tuple[bytes, int]:
    """`[a-z]`, `[!x]`, `[[:digit:]_]`: the characters that it matches, and where it ends. It never matches a slash."""
    place = start + 1
    negated = glob[place : place + 1] in (b"!", b"^")
    place += negated
    members, previous, first = b"", b"", True
    while first or glob[place : place + 1] != b"]":
        first = False
        member, place = _member(glob, place, previous)
        previous = member if len(member) == 1 else b""
        members += re.escape(member) if previous else member
    piece = b"(?:(?!/)[" + (b"^" if negated else b"") + members + b"])"
    return (piece if members else b"(?:(?!/).)" if negated else b"(?!)"), place + 1


def _member(glob: bytes, place: int, previous: bytes) -> tuple[bytes, int]:
    """The next member of a bracket (a character as it is, a range or class in the syntax of regular expressions), and
    where the one after it begins. Raises _NeverMatches."""
    char = glob[place : place + 1]
    if char == b"-" and previous and glob[place + 1 : place + 2] not in (b"", b"]"):
        last, place = _plain(glob, place + 1)
        return (b"" if last < previous else re.escape(previous) + b"-" + re.escape(last)), place
    if char == b"[" and glob[place + 1 : place + 2] == b":":
        end = glob.find(b"]", place + 2)
        if end < 0:
            raise _NeverMatches
        if end > place + 2 and glob[end - 1 : end] == b":":
            name = glob[place + 2 : end - 1]
            if name not in _CLASSES:
                raise _NeverMatches
            return _CLASSES[name], end + 1
    return _plain(glob, place)


def _plain(glob: bytes, place: int) -> tuple[bytes, int]:
    place += glob[place : place + 1] == b"\\"
    if place >= len(glob):
        raise _NeverMatches
    return glob[place : place + 1], place + 1


@dataclass(frozen=True)
class IgnoreRules:
    """The patterns that apply in one folder, those of the folders above it before its own."""

    levels: tuple[tuple[bytes, tuple[Pattern, ...]], ...] = ()  # (folder with a slash at its end, its patterns)

    @classmethod
    def above(cls, folder: Path) -> IgnoreRules:
        """Those of the folders above it, up to the top of its git repository."""
        top = next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)
        rules = cls()
        exclude = top / ".git" / "info" / "exclude"
        if exclude.is_file():
            rules = cls(((_base(top), tuple(_patterns(exclude))),))
        for each in reversed(folder.parents):
            if each.is_relative_to(top):
                rules = rules.within(each)
        return rules

    def within(self, folder: Path) -> IgnoreRules:
        """With the folder's own patterns."""
        own = [pattern for name in NAMES if (folder / name).is_file() for pattern in _patterns(folder / name)]
        return IgnoreRules((*self.levels, (_base(folder), tuple(own)))) if own else self

    def ignore(self, path: Path, is_folder: bool) -> bool:
        """Whether the entry in the folder of the innermost rules is left out."""
        pattern = self.deciding(path, is_folder)
        return pattern is not None and pattern.ignores

    def deciding(self, path: Path, is_folder: bool) -> Pattern | None:
        """The last pattern that matches."""
        name = os.fsencode(path)
        for base, patterns in reversed(self.levels):
            rest = name[len(base) :]
            for pattern in reversed(patterns):
                if pattern.matches(rest, is_folder):
                    return pattern
        return None


def _base(folder: Path) -> bytes:
    return os.fsencode(folder).rstrip(b"/") + b"/"


def _patterns(file: Path) -> Iterator[Pattern]:
    """Raises OSError for a file that cannot be read."""
    lines: Sequence[bytes] = file.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for number, line in enumerate(lines, 1):
        if found := Pattern.parse(line, f"{file}, line {number}: {line.decode(errors='replace').strip()}"):
            yield found
