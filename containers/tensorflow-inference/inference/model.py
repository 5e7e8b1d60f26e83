"""What does the model see in a batch of images? A TensorFlow SavedModel with the signature `serving_default`.

It takes one batch of images, float32 (n, height, width, 1 or 3) with values 0..255, and gives one row of scores for
each: models carry their own scaling, so that nothing here depends on how one was trained.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import argosy_storage as storage

SIGNATURE = "serving_default"
LABELS = "labels.txt"


class UnusableModel(Exception):
    """What was given as a model is none that this program can use."""


def fetched(address: str) -> Path:
    """The model's folder on this machine. Raises storage.Temporary, storage.Refused, UnusableModel."""
    folder = _downloaded(address) if storage.is_s3(address) else Path(address)
    if not (folder / "saved_model.pb").is_file():
        raise UnusableModel(f"there is no model at {address}: it has no saved_model.pb")
    return folder


def _downloaded(address: str) -> Path:
    prefix = address.rstrip("/") + "/"
    target = Path(tempfile.mkdtemp(prefix="model-"))
    names = [name for name in storage.names_below(prefix) if not name.endswith("/")]
    if not names:
        raise UnusableModel(f"there is no model at {prefix}: the prefix is empty")
    for name in names:
        storage.write(str(target / name.removeprefix(prefix)), storage.read(name))
    return target


class Classifier:
    """A loaded model. height, width, channels: of the images it takes."""

    framework, precision = "TensorFlow", "as saved"

    def __init__(self, tf: Any, folder: Path, address: str, image_size: int) -> None:
        """folder: what `fetched` gave for `address`. Raises UnusableModel."""
        self._tf, self.address, self.name = tf, address, Path(address).name
        self._model = self._loaded(folder)  # its variables live as long as this reference
        self._function = self._model.signatures[SIGNATURE]
        name, (_, height, width, self.channels) = self._input()
        self._input_name, self.height, self.width = name, height or image_size, width or image_size
        if not (self.height and self.width):
            raise UnusableModel(f"the model {address} takes images of any size: say which with --image-size")
        self.labels = _labels(folder, self._classes(), address)

    def top(self, images: Any, count: int) -> list[list[dict[str, object]]]:
        """For each image the `count` best labels with their scores, the best first."""
        [scores] = self._function(**{self._input_name: images}).values()
        best = self._tf.math.top_k(scores, min(count, scores.shape[-1]))
        rows = zip(best.indices.numpy().tolist(), best.values.numpy().tolist(), strict=True)
        return [
            [{"label": self.labels[k], "score": round(score, 6)} for k, score in zip(*row, strict=True)] for row in rows
        ]

    def _loaded(self, folder: Path) -> Any:
        try:
            model = self._tf.saved_model.load(os.fspath(folder))
        except Exception as fault:  # a damaged file may raise anything in there, and all mean the same
            reason = str(fault).strip().splitlines() or [type(fault).__name__]
            raise UnusableModel(f"the model {self.address} cannot be read: {reason[0]}") from fault
        if SIGNATURE not in getattr(model, "signatures", {}):
            raise UnusableModel(f"the model {self.address} has no signature {SIGNATURE}")
        return model

    def _input(self) -> tuple[str, list[int | None]]:
        wanted = list(self._function.structured_input_signature[1].items())
        shapes = [spec.shape.as_list() for _, spec in wanted if spec.shape.rank is not None]
        if len(wanted) != 1 or len(shapes) != 1 or len(shapes[0]) != 4 or shapes[0][3] not in (1, 3):
            raise UnusableModel(
                f"the model {self.address} must take one input (n, height, width, 1 or 3), not {shapes or 'any shape'}"
            )
        [(name, spec)] = wanted
        if shapes[0][0] is not None or spec.dtype != self._tf.float32:
            raise UnusableModel(
                f"the model {self.address} must take float32 in batches of any size, not {spec.dtype.name} {shapes[0]}"
            )
        return name, shapes[0]

    def _classes(self) -> int:
        given = list(self._function.structured_outputs.values())
        shape = given[0].shape.as_list() if len(given) == 1 and given[0].shape.rank == 2 else [None, None]
        if not shape[1]:
            raise UnusableModel(f"the model {self.address} must give one output (n, classes)")
        return int(shape[1])


def _labels(folder: Path, classes: int, address: str) -> list[str]:
    """The lines of the model's labels.txt; without one the classes' numbers."""
    path = folder / LABELS
    if not path.is_file():
        return [str(number) for number in range(classes)]
    labels = path.read_text(encoding="utf-8").splitlines()
    if len(labels) != classes:
        raise UnusableModel(f"the model {address} has {classes} classes, but {len(labels)} lines in {LABELS}")
    return labels
