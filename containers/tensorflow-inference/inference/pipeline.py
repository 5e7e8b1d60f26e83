"""How do images get to the model in time? A tf.data pipeline: read and decode in parallel, batch, prefetch.

An unreadable file becomes an error text with an empty image, so that one bad file costs one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import argosy_storage as storage

from inference.fetching import DeadImage, Fetcher
from inference.model import Classifier
from inference.sources import Picture

PARALLEL_READS = 16
PREFETCHED_BATCHES = 2


@dataclass(frozen=True)
class Batch:
    """Some of the images in their order. `errors` has a text for each image that could not be had, else ''."""

    pictures: Sequence[Picture]
    images: Any  # tensor (n, height, width, channels), 0..255
    errors: Sequence[str]


class Pipeline:
    """Reads `pictures` for `model`. Errors that end the task, such as a denied permission, are raised."""

    def __init__(
        self, tf: Any, pictures: Sequence[Picture], model: Classifier, batch_size: int, fetcher: Fetcher
    ) -> None:
        self._tf, self._pictures, self._model, self._batch_size = tf, pictures, model, batch_size
        self._fetcher = fetcher
        self._fatal: list[Exception] = []

    def __iter__(self) -> Iterator[Batch]:
        """Raises storage.Temporary, storage.Refused."""
        first = 0
        for images, errors in self._dataset():
            if self._fatal:
                raise self._fatal[0]
            texts = [text.decode() for text in errors.numpy().tolist()]
            yield Batch(self._pictures[first : first + len(texts)], images, texts)
            first += len(texts)

    def _dataset(self) -> Any:
        tf = self._tf
        options = tf.data.Options()
        options.threading.private_threadpool_size = PARALLEL_READS  # they wait for the network, not for a core
        numbers = tf.data.Dataset.range(len(self._pictures)).with_options(options)
        read = numbers.map(self._read, num_parallel_calls=PARALLEL_READS, deterministic=True)
        return read.batch(self._batch_size).prefetch(PREFETCHED_BATCHES)

    def _read(self, number: Any) -> Any:
        tf, model = self._tf, self._model
        image, error = tf.py_function(self._image, [number], [tf.float32, tf.string])
        image.set_shape((model.height, model.width, model.channels))
        error.set_shape(())
        return image, error

    def _image(self, number: Any) -> tuple[Any, str]:
        tf, model = self._tf, self._model
        empty = tf.zeros((model.height, model.width, model.channels))
        if self._fatal:
            return empty, "not read"
        with tf.device("/CPU:0"):
            try:
                data = self._fetcher.fetch(self._pictures[int(number)])
                return self._decoded(data), ""
            except DeadImage as fault:
                return empty, str(fault)
            except tf.errors.OpError as fault:
                return empty, f"not an image: {str(fault.message).splitlines()[0]}"
            except (storage.Temporary, storage.Refused) as fault:
                self._fatal.append(fault)  # an exception would lose its kind on its way through TensorFlow
                return empty, str(fault)

    def _decoded(self, data: bytes) -> Any:
        tf, model = self._tf, self._model
        image = tf.io.decode_image(data, channels=model.channels, expand_animations=False)
        if tuple(image.shape[:2]) == (model.height, model.width):
            return tf.cast(image, tf.float32)
        return tf.image.resize(image, (model.height, model.width), antialias=True)
