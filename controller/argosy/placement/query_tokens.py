"""The tokens of a cluster query: subjects, operators, values and patterns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

OPERATORS: Final = {
    "==": "EQUAL",
    "equals": "EQUAL",
    "!=": "NOT_EQUAL",
    "not_equals": "NOT_EQUAL",
    ">": "GREATER",
    "greater_than": "GREATER",
    ">=": "GREATER_EQUAL",
    "greater_than_equal": "GREATER_EQUAL",
    "<": "LESS",
    "less_than": "LESS",
    "<=": "LESS_EQUAL",
    "less_than_equal": "LESS_EQUAL",
    "=~": "MATCHES",
    "matches": "MATCHES",
    "!~": "NOT_MATCHES",
    "not_matches": "NOT_MATCHES",
    "in": "IN",
    "!in": "NOT_IN",
    "not_in": "NOT_IN",
    "exists": "EXISTS",
    "!exists": "NOT_EXISTS",
    "not_exists": "NOT_EXISTS",
}
SUBJECTS: Final = (
    "agentConnected",
    "agentVersion",
    "ec2InstanceId",
    "registeredAt",
    "runningTasksCount",
    "task:group",
    "task:startedBy",
)
SUBJECT_NAMES: Final = "attribute:NAME, " + ", ".join(SUBJECTS)

_JOINERS: Final = {"and": "AND", "&&": "AND", "or": "OR", "||": "OR", "not": "NOT", "!": "NOT"}
_PUNCTUATION: Final = {"(": "LPAR", ")": "RPAR", "[": "LSQB", "]": "RSQB", ",": "COMMA"}
_ATTRIBUTE: Final = re.compile(r"attribute:[A-Za-z0-9_./\\-]{1,128}\Z")
_WORD: Final = re.compile(r"""[^\s()\[\],'"&|!=<>~]+""")
_OPERATOR: Final = re.compile(r"==|!=|>=|<=|=~|!~|>|<|!in\b|!exists\b|[A-Za-z_]+")
_JOINER: Final = re.compile(r"&&|\|\||!")
_SPACE: Final = re.compile(r"\s*")
_VALUE_NEXT: Final = frozenset(
    {"EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "LSQB", "COMMA"}
)
_PATTERN_NEXT: Final = frozenset({"MATCHES", "NOT_MATCHES"})


class QuerySyntaxError(ValueError):
    """An invalid expression: the fault, its column (from 1), and the expected input."""

    def __init__(self, message: str, column: int, expected: str = "") -> None:
        tail = f"; expected {expected}" if expected else ""
        super().__init__(f"column {column}: {message}{tail}")
        self.message = message
        self.column = column
        self.expected = expected


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """(kind, text, position from 0) of every token. QuerySyntaxError where none can begin."""
    previous, position = "", _skip_space(text, 0)
    while position < len(text):
        kind, value, end = _next(text, position, previous)
        yield kind, value, position
        previous, position = kind, _skip_space(text, end)


def _next(text: str, position: int, previous: str) -> tuple[str, str, int]:
    if previous in _PATTERN_NEXT:
        return _pattern(text, position)
    if previous == "SUBJECT":
        return _operator(text, position)
    if previous in ("IN", "NOT_IN") and text[position] != "[":
        raise QuerySyntaxError(f"{_shown(text, position)} is not a list", position + 1, "[")
    if text[position] in _PUNCTUATION:
        return _PUNCTUATION[text[position]], text[position], position + 1
    if previous in _VALUE_NEXT:
        return _value(text, position)
    return _joiner_or_subject(text, position)


def _operator(text: str, position: int) -> tuple[str, str, int]:
    found = _OPERATOR.match(text, position)
    if found is None or found.group() not in OPERATORS:
        message = f"{_shown(text, position)} is not an operator"
        raise QuerySyntaxError(message, position + 1, "an operator such as == or in")
    return OPERATORS[found.group()], found.group(), found.end()


def _value(text: str, position: int) -> tuple[str, str, int]:
    quote = text[position]
    if quote in "'\"":
        return _quoted("VALUE", text, position)
    found = _WORD.match(text, position)
    if found is None:
        raise QuerySyntaxError(f"{_shown(text, position)} is not a value", position + 1, "a word or a quoted string")
    return "VALUE", found.group(), found.end()


def _quoted(kind: str, text: str, position: int) -> tuple[str, str, int]:
    end = text.find(text[position], position + 1)
    if end < 0:
        raise QuerySyntaxError("a quoted string does not end", position + 1, f"a closing {text[position]}")
    return kind, text[position + 1 : end], end + 1


def _pattern(text: str, position: int) -> tuple[str, str, int]:
    """Quoted, or bare up to white space, &&, || or a parenthesis that the pattern itself did not open."""
    if text[position] in "'\"":
        return _quoted("PATTERN", text, position)
    depth, in_class, at = 0, False, position
    while at < len(text) and not text[at].isspace() and text[at : at + 2] not in ("&&", "||"):
        character = text[at]
        if character == "\\":
            at += 1
        elif in_class or character == "[":
            in_class = character != "]"
        elif character in "()":
            depth += 1 if character == "(" else -1
            if depth < 0:
                break
        at += 1
    at = min(at, len(text))
    if at == position:
        raise QuerySyntaxError(f"{_shown(text, position)} is not a pattern", position + 1, "a regular expression")
    return "PATTERN", text[position:at], at


def _joiner_or_subject(text: str, position: int) -> tuple[str, str, int]:
    if found := _JOINER.match(text, position):
        return _JOINERS[found.group()], found.group(), found.end()
    found = _WORD.match(text, position)
    word = found.group() if found else ""
    if found is None:
        raise QuerySyntaxError(f"{_shown(text, position)} is misplaced", position + 1, "and, or, not, or a subject")
    if word in _JOINERS:
        return _JOINERS[word], word, found.end()
    if word in SUBJECTS or _ATTRIBUTE.match(word):
        return "SUBJECT", word, found.end()
    raise QuerySyntaxError(_why_no_subject(word), position + 1, "and, or, not, or a subject: " + SUBJECT_NAMES)


def _why_no_subject(word: str) -> str:
    if word.lower() in _JOINERS:
        return f"{word!r}: write and, or, not in lower case"
    if word.startswith("attribute:"):
        return "an attribute name is 1 to 128 of A-Z a-z 0-9 - _ . / \\"
    return f"{word[:60]!r} is not a subject"


def _shown(text: str, position: int) -> str:
    word = text[position:].split(None, 1)[0]
    return repr(word[:20])


def _skip_space(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position
