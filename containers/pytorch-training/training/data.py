"""What is trained on: batches made once, or a small real set that a package ships.

Which examples a batch has depends on its step and process alone, so a continued training takes the same ones.
"""

from __future__ import annotations

import gzip
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from training.arguments import Request

HELD_OUT = 297  # digits that are not trained on
DIGITS, GREYS = 10, 16
CLASSES = 1000  # of synthetic images
VOCABULARY = 256  # a token is a byte
PROCESSES_MAX = 1024


class NoData(Exception):
    """The package that ships the real set is not installed."""


class Synthetic:
    """One batch, on the device already: only the training is measured."""

    def __init__(self, torch: Any, request: Request, device: str, rank: int) -> None:
        chance = torch.Generator().manual_seed(rank)
        if request.unit == "tokens":
            tokens = torch.randint(0, VOCABULARY, (request.batch_size, request.size + 1), generator=chance).to(device)
            self._batch = tokens[:, :-1], tokens[:, 1:]
        else:
            images = torch.rand((request.batch_size, 3, request.size, request.size), generator=chance)
            labels = torch.randint(0, CLASSES, (request.batch_size,), generator=chance)
            self._batch = images.to(device, memory_format=torch.channels_last), labels.to(device)

    def batch(self, step: int) -> tuple[Any, Any]:
        return self._batch


class DrawnExamples:
    """Examples of a real set, drawn by chance."""

    def __init__(self, torch: Any, request: Request, rank: int, examples: int) -> None:
        self._torch, self._rank, self._examples, self._count = torch, rank, examples, request.batch_size

    def drawn(self, step: int) -> Any:
        chance = self._torch.Generator().manual_seed(step * PROCESSES_MAX + self._rank)
        return self._torch.randint(0, self._examples, (self._count,), generator=chance)


class Digits(DrawnExamples):
    """scikit-learn's handwritten digits, as images (n, 3, size, size) of 0..1."""

    def __init__(self, torch: Any, request: Request, device: str, rank: int) -> None:
        rows = [[float(cell) for cell in line.split(",")] for line in _digits().splitlines()]
        table = torch.tensor(rows, device=device)
        small = (table[:, :-1] / GREYS).reshape(-1, 1, 8, 8)
        images = torch.nn.functional.interpolate(small, size=(request.size, request.size), mode="nearest")
        self._images = images.expand(-1, 3, -1, -1).contiguous(memory_format=torch.channels_last)
        self._labels = table[:, -1].long()
        super().__init__(torch, request, rank, len(rows) - HELD_OUT)

    def batch(self, step: int) -> tuple[Any, Any]:
        chosen = self.drawn(step).to(self._labels.device)
        return self._images[chosen], self._labels[chosen]

    def held_out(self) -> tuple[Any, Any]:
        return self._images[-HELD_OUT:], self._labels[-HELD_OUT:]


class Text(DrawnExamples):
    """The texts of Python's own `help()`, byte by byte."""

    def __init__(self, torch: Any, request: Request, device: str, rank: int) -> None:
        text = (folder("pydoc_data", "Python's documentation") / "topics.py").read_bytes()
        self._text = torch.tensor(list(text), device=device)
        self._window = torch.arange(request.size + 1, device=device)
        super().__init__(torch, request, rank, len(text) - request.size)

    def batch(self, step: int) -> tuple[Any, Any]:
        tokens = self._text[self.drawn(step).to(self._text.device)[:, None] + self._window]
        return tokens[:, :-1], tokens[:, 1:]


def source(torch: Any, request: Request, device: str, rank: int) -> Any:
    """Raises NoData."""
    real = Text if request.unit == "tokens" else Digits
    return (Synthetic if request.data == "synthetic" else real)(torch, request, device, rank)


def classes(request: Request) -> int:
    return CLASSES if request.data == "synthetic" else DIGITS


def _digits() -> str:
    path = folder("sklearn", "scikit-learn's digits") / "datasets" / "data" / "digits.csv.gz"
    with gzip.open(path, "rt") as rows:
        return rows.read()


def folder(package: str, what: str) -> Path:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise NoData(f"{what} cannot be trained on: the package {package} is not installed")
    return Path(found.origin).parent
