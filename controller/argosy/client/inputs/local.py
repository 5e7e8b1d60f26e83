"""Inputs of this machine in a spec, and the addresses that replace them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from argosy.client.inputs.upload import Upload
from argosy.client.packing.folder import mib
from argosy.spec.program import is_local_input, listed_inputs

_TOKEN = re.compile(r"(?<!\$)\$\{")


def with_addresses(inputs: Sequence[str], upload: Callable[[str], Upload]) -> list[str]:
    """What is sent. upload: of a path, called once for each.

    `./images/${item}` uploads `./images/`, and each task reads the file that it names.
    """
    done: dict[str, Upload] = {}
    addresses = []
    for text in inputs:
        path, rest = split_input(text) if is_local_input(text) else ("", text)
        if path and path not in done:
            done[path] = upload(path)
        addresses.append((done[path].uri if path else "") + rest)
    return addresses


def local_paths(spec: Mapping[str, Any]) -> list[str]:
    """The paths of this machine, or names, among the inputs of a spec."""
    return [split_input(text)[0] for text in listed_inputs(spec) if is_local_input(text)]


def split_input(text: str) -> tuple[str, str]:
    """(the path on this machine, what is appended to its address): `a/b/${index}.jpg` -> `a/b/`, `${index}.jpg`."""
    token = _TOKEN.search(text)
    begin = text.rfind("/", 0, token.start()) + 1 if token else len(text)
    return text[:begin].replace("$${", "${") or ".", text[begin:]


def said_of(path: str, done: Upload) -> str:
    """What was uploaded, for people."""
    count = len(done.folder.files)
    files = f"{count:,} file{'' if count == 1 else 's'}, {mib(done.folder.size)}"
    return f"{path}: {files}; uploaded {mib(done.sent)}" if done.sent else f"{path}: {files}; uploaded already"
