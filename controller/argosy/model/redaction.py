"""Text from outside without secrets, account ids and control characters.

>>> redacted("aws_secret_access_key=abc, role arn:aws:iam::123456789012:role/x")
'aws_secret_access_key=<redacted>, role arn:aws:iam::<account>:role/x'
"""

from __future__ import annotations

import re

_RULES = (
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]"), ""),  # colours and control characters
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "<access key>"),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), "<token>"),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:secret|token|passw|signature|credential|api[_-]?key)[\w-]*\"?\s*[=:]\s*)[^\s,;&]+"
        ),
        r"\1<redacted>",
    ),
    (re.compile(r"(?i)\b(authorization\"?\s*[=:]\s*)[^\n]+"), r"\1<redacted>"),
    (re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])"), "<redacted>"),  # the form of a secret key
    (re.compile(r"(?<!\d)\d{12}(?!\d)"), "<account>"),
)


def redacted(text: str) -> str:
    """The text with each secret and account id replaced by a word in angle brackets."""
    for pattern, instead in _RULES:
        text = pattern.sub(instead, text)
    return text


def last_lines(text: str, lines: int, characters: int) -> str:
    """The last lines that are not empty, redacted, and of these the last characters."""
    kept = [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
    return redacted("\n".join(kept))[-characters:]
