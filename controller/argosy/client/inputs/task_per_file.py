"""One task per file: the files that a pattern names, here or in S3."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from argosy.client.errors import InvalidInput
from argosy.layout import split_s3

_MAGIC = re.compile(r"[*?\[]")
_QUOTE = "quote a pattern, so that the shell leaves it alone: --input-each 'images/*.jpg'"


def files_named(pattern: str, s3: Callable[[], Any]) -> tuple[str, list[str]]:
    """(what comes before each name in an input, the sorted names). pattern: a folder, a prefix that ends in /, or a
    glob, in which ** also matches slashes. s3: makes the client. Raises InvalidInput if there are none."""
    magic = _MAGIC.search(pattern)
    begin = pattern.rfind("/", 0, magic.start()) + 1 if magic else len(pattern)
    base, rest = pattern[:begin], pattern[begin:]
    if "://" in pattern:
        names = sorted(_objects(base, rest, s3()))
    else:
        base = os.path.join(base or ".", "") if magic or os.path.isdir(base) else base
        names = sorted(_files(base, rest))
    if not names:
        raise InvalidInput(f"No file matches {pattern}.", next_step="check the pattern, or name a folder")
    return base.replace("${", "$${"), names


def shards_of(names: list[str], size: int | None) -> list[Any]:
    """The items of the tasks: a name each, or with a size a list of that many. Raises InvalidInput if two files of
    a task have the same name in their folders."""
    if size is None:
        return names
    shards = [names[begin : begin + size] for begin in range(0, len(names), size)]
    for shard in shards:
        found: dict[str, str] = {}
        for name in shard:
            if (other := found.setdefault(os.path.basename(name), name)) != name:
                sentence = f"{other} and {name} would be the same file of a task, which finds its files in one folder."
                raise InvalidInput(sentence, next_step="rename one of them, or leave out --shard-size")
    return shards


def _files(base: str, rest: str) -> Iterator[str]:
    if os.path.isfile(base):
        raise InvalidInput(f"--input-each {base} is one file.", next_step=_QUOTE)
    for name in glob.iglob(rest or "**", root_dir=base, recursive=True, include_hidden=not rest):
        if os.path.isfile(os.path.join(base, name)):
            try:
                name.encode()
            except UnicodeEncodeError as fault:
                raise InvalidInput(f"{os.fsencode(name)!r} has a name that is not UTF-8: rename it.") from fault
            yield name


def _objects(base: str, rest: str, s3: Any) -> Iterator[str]:
    bucket, prefix = split_s3(base)
    if not rest and prefix and not prefix.endswith("/"):
        raise InvalidInput(f"--input-each {base} is one object.", next_step="a prefix ends with /; " + _QUOTE)
    wanted = re.compile(_regex(rest), re.DOTALL)
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for each in page.get("Contents", ()):
            name = each["Key"].removeprefix(prefix)
            if wanted.fullmatch(name) and not name.endswith("/") and name:
                yield name


def _regex(pattern: str) -> str:
    """Of a glob; the empty one matches everything."""
    found = "" if pattern else ".*"
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", pattern, re.DOTALL):
        if piece.startswith("[") and len(piece) > 1:
            found += "[" + re.sub(r"^!", "^", piece[1:-1]).replace("\\", "\\\\") + "]"
        else:
            found += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece) or re.escape(piece)
    return found
