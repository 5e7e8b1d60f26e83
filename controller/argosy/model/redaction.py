"""Text and documents from outside without secrets, account ids and control characters.

>>> redacted("aws_secret_access_key=abc, role arn:aws:iam::123456789012:role/x")
'aws_secret_access_key=<redacted>, role arn:aws:iam::<account>:role/x'
>>> without_secrets({"command": ["sync", "--token", "abc"], "environment": {"HOME": "/root"}, "vcpus": 2})
{'command': '<redacted: it holds a secret>', 'environment': {'HOME': '<redacted>'}, 'vcpus': 2}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

_MASK = "<redacted>"
_SECRETS = (_MASK, "<token>", "<access key>")
_WORDS = r"(?:secret|token|passw|signature|credential|api[_-]?key|private[_-]?key)"
_NAME = re.compile(rf"(?i){_WORDS}|^authorization$")
_RULES = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]"), ""),  # colours and control characters
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), _MASK),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "<access key>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), "<token>"),
    (re.compile(r"\b(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|hf_|sk-)[\w-]{16,}"), "<token>"),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{6,}"), rf"\1{_MASK}"),
    (re.compile(r"(://)[^/\s@]+@"), rf"\1{_MASK}@"),  # of a URL with a user and a password
    (
        re.compile(rf"""(?i)([\w-]*{_WORDS}[\w-]*[\\"']*\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;&]+)"""),
        rf"\1{_MASK}",
    ),
    (re.compile(rf"(?i)(--?[\w-]*{_WORDS}[\w-]*\s+)[^\s-]\S*"), rf"\1{_MASK}"),  # an option and its value
    (re.compile(r"(?i)\b(authorization\"?\s*[=:]\s*)[^\n]+"), rf"\1{_MASK}"),
    (re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"), _MASK),  # the form of a secret key
    (re.compile(r"[A-Za-z0-9/+=]{100,}"), _MASK),  # the form of a session token
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*[a-z]"), "<email>"),
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "<account>"),
)


def redacted(text: str) -> str:
    """The text with each secret, account id and email address replaced by a word in angle brackets."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text


def without_secrets(document: Any, known: Collection[str] = ()) -> Any:
    """A JSON document with every text redacted, the values of environment variables and of members with a secret's name
    masked, and a command that holds a secret left out. known: texts that are secret wherever they appear."""
    if isinstance(document, str):
        for each in sorted(known, key=len, reverse=True):
            document = document.replace(each, _MASK)
        return redacted(document)
    if isinstance(document, Mapping):
        return {redacted(str(name)): _member(str(name), value, known) for name, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [without_secrets(each, known) for each in document]
    return document


def _member(name: str, value: Any, known: Collection[str]) -> Any:
    if isinstance(value, str) and _NAME.search(name):
        return _MASK
    if name == "environment" and isinstance(value, Mapping):
        return dict.fromkeys(value, _MASK)
    if name == "environment" and isinstance(value, (list, tuple)):
        return [{"name": each.get("name"), "value": _MASK} for each in value]
    if name in ("command", "run") and value:
        line = " ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        if any(word in without_secrets(line, known) for word in _SECRETS):
            return "<redacted: it holds a secret>"
    return without_secrets(value, known)


def last_lines(text: str, lines: int, characters: int) -> str:
    """The last lines that are not empty, redacted, and of these the last characters."""
    kept = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return redacted("\n".join(kept))[-characters:]
