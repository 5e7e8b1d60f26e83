"""How fast is a network trained on some devices? Synthetic images, synchronous data parallelism, one all-reduce a step.

The images are made once on each device, so that only the training is measured. Reading the loss ends each round: until
then the devices may still be at work.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmark.arguments import Request

CLASSES = 1000
TINY_CLASSES = 10


class Training:
    """A network with its optimizer and data on `names` (TensorFlow's names of devices)."""

    def __init__(self, tf: Any, keras: Any, request: Request, names: Sequence[str]) -> None:
        self._tf, self._request, self._names = tf, request, list(names)
        self._classes = TINY_CLASSES if request.model == "tiny" else CLASSES
        several = len(self._names) > 1
        self._strategy = tf.distribute.MirroredStrategy(self._names) if several else _one(tf, self._names[0])
        with self._strategy.scope():
            self._model = network(keras, request.model, request.image_size, self._classes)
            optimizer = keras.optimizers.SGD(0.01, momentum=0.9)
            mixed = request.precision == "mixed"
            self._optimizer = keras.optimizers.LossScaleOptimizer(optimizer) if mixed else optimizer
            self._optimizer.build(self._model.trainable_variables)
        self._losses = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
        self._data = self._strategy.experimental_distribute_values_from_function(lambda context: self._batch())
        self._steps = tf.function(self._some_steps)

    @property
    def images_per_step(self) -> int:
        return self._request.batch_size * len(self._names)

    def run(self, steps: int) -> float:
        """Seconds for `steps` steps. The first call also traces and compiles."""
        began = time.monotonic()
        for _ in range(steps):
            loss = self._steps(self._data)
        float(loss)
        return time.monotonic() - began

    def _batch(self) -> Any:
        tf, request = self._tf, self._request
        side = request.image_size
        images = tf.random.stateless_uniform((request.batch_size, side, side, 3), seed=(1, 2))
        labels = tf.random.stateless_uniform((request.batch_size,), (1, 2), 0, self._classes, tf.int32)
        return images, labels

    def _some_steps(self, data: Any) -> Any:
        losses = self._strategy.run(self._step, args=data if isinstance(data, tuple) else (data,))
        return self._strategy.reduce(self._tf.distribute.ReduceOp.MEAN, losses, axis=None)

    def _step(self, images: Any, labels: Any) -> Any:
        tf = self._tf
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.cast(self._losses(labels, self._model(images, training=True)), tf.float32))
            scaled = self._optimizer.scale_loss(loss) / len(self._names)
        variables = self._model.trainable_variables
        self._optimizer.apply(tape.gradient(scaled, variables), variables)
        return loss


def _one(tf: Any, name: str) -> Any:
    """Without the bookkeeping for several devices, which would slow down one."""
    return tf.distribute.OneDeviceStrategy(name)


def network(keras: Any, name: str, side: int, classes: int) -> Any:
    """Logits for `classes`; `tiny` is for tests, on machines that have no GPU."""
    shape = (side, side, 3)
    if name == "resnet50":
        return keras.applications.ResNet50(weights=None, input_shape=shape, classes=classes, classifier_activation=None)
    if name == "mobilenetv2":
        return keras.applications.MobileNetV2(
            weights=None, input_shape=shape, classes=classes, classifier_activation=None
        )
    layers = keras.layers
    return keras.Sequential(
        [layers.Input(shape), layers.Conv2D(8, 3, activation="relu"), layers.Flatten(), layers.Dense(classes)]
    )
