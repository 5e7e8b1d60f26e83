"""The objects that a program reads, and their names in its folder of inputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from argosy.model.exit_codes import WRONG_REQUEST
from argosy.runner.objects import CONNECTIONS, Objects
from argosy.runner.order import RunnerFault, split_address


def fetch_inputs(addresses: Iterable[str], folder: Path, objects: Objects) -> None:
    """Every object into a file below `folder`. Raises RunnerFault or OSError."""
    planned: dict[str, str] = {}
    for address in addresses:
        for name, uri in _named(address, objects):
            if name in planned:
                raise RunnerFault(WRONG_REQUEST, f"two inputs would be the file {name}: {planned[name]} and {uri}")
            planned[name] = uri
    for name, uri in planned.items():
        _make_room(folder, name, uri, planned)
    with ThreadPoolExecutor(CONNECTIONS, "argosy-input") as pool:
        list(pool.map(lambda name: objects.download(planned[name], folder / name, "the input"), planned))


def _named(address: str, objects: Objects) -> Iterator[tuple[str, str]]:
    """(name in the folder, address) of each object that an input names."""
    bucket, key = split_address(address, "the input")
    if key and not key.endswith("/"):
        yield _name(key.rpartition("/")[2], address), address
        return
    found = False
    for each in objects.below(address, "the input"):
        found = True
        if not each.key.endswith("/"):  # what consoles make to show an empty folder
            uri = f"s3://{bucket}/{each.key}"
            yield _name(each.key.removeprefix(key), uri), uri
    if not found:
        raise RunnerFault(WRONG_REQUEST, f"there is no object below the input {address}")


def _name(text: str, uri: str) -> str:
    if {"", ".", ".."} & set(text.split("/")) or "\0" in text:
        raise RunnerFault(WRONG_REQUEST, f"the key of the input {uri} is not a file path")
    return text


def _make_room(folder: Path, name: str, uri: str, planned: dict[str, str]) -> None:
    above = name.rpartition("/")[0]
    while above:
        if above in planned:
            raise RunnerFault(WRONG_REQUEST, f"the input {planned[above]} is a file where {uri} needs a folder")
        above = above.rpartition("/")[0]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
