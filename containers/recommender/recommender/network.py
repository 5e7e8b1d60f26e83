"""The network itself, in Keras: built from a config, trained, stored, asked for scores.

Data parallel: every device holds the whole network and works on a share of each batch (MirroredStrategy). DSSTNE splits
the network over its GPUs instead; the README describes the consequences.
"""

from __future__ import annotations

import io
import math
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recommender.faults import BadInput
from recommender.network_config import Layer, Network, parse
from recommender.text_data import DataSet

SEED = 12134  # any, but always the same: two trainings of one image on one device give one network
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Hyperparameters:
    """batch: samples of one step, over all devices. rate, decay: `-alpha` and `-lambda`."""

    batch: int
    epochs: int
    rate: float
    decay: float


@dataclass
class TrainedModel:
    """A Keras model from (samples, inputs) to (samples, outputs) logits, and its source."""

    network: Network
    text: str
    inputs: int
    outputs: int
    model: Any


def build(text: str, inputs: int, outputs: int, decay: float = 0.0) -> TrainedModel:
    """Raises BadInput when the config's sizes are not those of the data."""
    import keras

    network = parse(text)
    for what, said, found in (("Input", network.input_size, inputs), ("Output", network.layers[-1].size, outputs)):
        if said not in (0, found):
            raise BadInput(f"config: the {what} layer has N {said}, but the data have {found} features")
    keras.utils.set_random_seed(SEED)
    entry = keras.Input((inputs,))
    flow = keras.layers.Dropout(network.denoising)(entry) if network.denoising else entry
    for layer in network.layers[:-1]:
        flow = _dense(keras, layer, layer.size, layer.activation, decay)(flow)
        if layer.sparse and network.penalty:
            flow = _penalty(keras, *network.penalty)(flow)
        if layer.dropout:
            flow = keras.layers.Dropout(layer.dropout)(flow)
    flow = _dense(keras, network.layers[-1], outputs, None, decay)(flow)
    return TrainedModel(network, text, inputs, outputs, keras.Model(entry, flow))


def _dense(keras: Any, layer: Layer, size: int, activation: str | None, decay: float) -> Any:
    spread = {
        "Xavier": lambda: keras.initializers.GlorotUniform(seed=SEED),
        "Gaussian": lambda: keras.initializers.RandomNormal(stddev=layer.scale, seed=SEED),
        "Uniform": lambda: keras.initializers.RandomUniform(-layer.scale, layer.scale, seed=SEED),
        "Constant": lambda: keras.initializers.Constant(layer.scale),
    }
    return keras.layers.Dense(
        size,
        activation=activation,
        kernel_initializer=spread[layer.scheme](),
        bias_initializer=keras.initializers.Constant(layer.bias),
        kernel_regularizer=keras.regularizers.L2(decay / 2) if decay else None,
    )


def _penalty(keras: Any, wanted: float, weight: float) -> Any:
    """Draws the mean activation of each unit to `wanted`: `weight` times the Kullback-Leibler divergence.

    A device that the last batch has no sample for has no mean, and no penalty.
    """

    class SparsenessPenalty(keras.layers.Layer):  # type: ignore[misc]
        def call(self, units: Any) -> Any:
            samples = keras.ops.cast(keras.ops.shape(units)[0], units.dtype)
            mean = keras.ops.sum(units, axis=0) / keras.ops.maximum(samples, 1.0)
            mean = keras.ops.clip(mean, 1e-6, 1 - 1e-6)
            off = wanted * keras.ops.log(wanted / mean) + (1 - wanted) * keras.ops.log((1 - wanted) / (1 - mean))
            self.add_loss(weight * keras.ops.sum(off) * keras.ops.minimum(samples, 1.0))
            return units

    return SparsenessPenalty()


def loss(network: Network) -> Any:
    """ScaledMarginalCrossEntropy: summed over the outputs, a mean over the samples; computed from the logits."""
    import keras

    ops = keras.ops

    def scaled_marginal_cross_entropy(truth: Any, logits: Any) -> Any:
        chance = ops.sigmoid(logits)
        ones = ops.where(chance < network.one_target, network.one_scale * ops.softplus(-logits), 0.0)
        zeros = ops.where(chance > network.zero_target, network.zero_scale * ops.softplus(logits), 0.0)
        return ops.sum(ops.where(truth > 0.5, ones, zeros), axis=-1)

    return scaled_marginal_cross_entropy


def batches(tf: Any, inputs: DataSet, outputs: DataSet, batch: int, *, shuffle: bool) -> Any:
    """A tf.data pipeline of dense (inputs, outputs) batches, in the order of the samples unless `shuffle`."""
    sparse = [tf.RaggedTensor.from_row_splits(each.features, each.starts) for each in (inputs, outputs)]

    def dense(rows: Any, ragged: Any, width: int) -> Any:
        chosen = tf.gather(ragged, rows)
        places = tf.stack([chosen.value_rowids(), tf.cast(chosen.values, tf.int64)], axis=1)
        shape = tf.stack([tf.size(rows, tf.int64), tf.constant(width, tf.int64)])
        found = tf.scatter_nd(places, tf.ones_like(chosen.values, tf.float32), shape)
        return tf.ensure_shape(found, (None, width))

    order = tf.data.Dataset.range(len(inputs))
    if shuffle:
        order = order.shuffle(len(inputs), seed=SEED)
    pairs = order.batch(batch).map(
        lambda rows: (dense(rows, sparse[0], inputs.width), dense(rows, sparse[1], outputs.width)),
        num_parallel_calls=tf.data.AUTOTUNE,
    )
    return pairs.prefetch(tf.data.AUTOTUNE)


def train(
    tf: Any, text: str, inputs: DataSet, outputs: DataSet, learning: Hyperparameters, devices: Sequence[str]
) -> TrainedModel:
    """Prints one line an epoch. Raises BadInput when the error is no number any more."""
    import keras

    began = time.monotonic()
    strategy = tf.distribute.MirroredStrategy(list(devices)) if len(devices) > 1 else tf.distribute.get_strategy()
    with strategy.scope():
        trained = build(text, inputs.width, outputs.width, learning.decay)
        trained.model.compile(keras.optimizers.Adam(learning.rate), loss(trained.network))
    data = batches(tf, inputs, outputs, learning.batch, shuffle=trained.network.shuffle)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    told = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: _tell(epoch, logs["loss"]))
    trained.model.fit(data.with_options(options), epochs=learning.epochs, verbose=0, shuffle=False, callbacks=[told])
    seconds = time.monotonic() - began
    print(
        f"Total Training Time {seconds:.1f} s on {', '.join(devices)}:"
        f" {len(inputs) * learning.epochs / seconds:.0f} samples/s",
        flush=True,
    )
    return trained


def _tell(epoch: int, error: float) -> None:
    print(f"epoch {epoch + 1}: Average_Error {error:.4f}", flush=True)
    if not math.isfinite(error):
        raise BadInput(f"the training diverged: the error is {error} after epoch {epoch + 1}; try a smaller -alpha")


def to_bytes(trained: TrainedModel) -> bytes:
    buffer = io.BytesIO()
    weights = {f"weights{number}": each for number, each in enumerate(trained.model.get_weights())}
    np.savez(buffer, config=trained.text, inputs=trained.inputs, outputs=trained.outputs, **weights)
    return buffer.getvalue()


def from_bytes(data: bytes, source: str) -> TrainedModel:
    """The inverse of `to_bytes`. Raises BadInput."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            text, sizes = str(arrays["config"]), (int(arrays["inputs"]), int(arrays["outputs"]))
            weights = [arrays[f"weights{number}"] for number in range(len(arrays.files) - 3)]
        trained = build(text, *sizes)
        trained.model.set_weights(weights)
    except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{source} is no network of this program's train (DSSTNE's own cannot be read): {error}"
        ) from error
    return trained


def scorer(tf: Any, trained: TrainedModel, layer: str) -> Callable[[Any], Floats]:
    """The outputs of a layer's units for a batch of dense inputs; for the output layer, probabilities from 0 to 1.

    Raises BadInput for a missing layer.
    """
    import keras

    place = layer_place(trained.network, layer)
    dense = [each for each in trained.model.layers if isinstance(each, keras.layers.Dense)]
    asked = keras.Model(trained.model.input, dense[place].output)
    shape: Callable[[Any], Any] = tf.sigmoid if place == len(dense) - 1 else tf.identity
    return lambda rows: shape(asked(rows, training=False)).numpy()


def layer_place(network: Network, layer: str) -> int:
    """Which of the layers after the input has this name; "Output" is the last whatever its name. Raises BadInput."""
    names = [each.name.lower() for each in network.layers]
    if layer.lower() == "output":
        return len(names) - 1
    if layer.lower() not in names:
        found = ", ".join(each.name for each in network.layers)
        raise BadInput(f"-l: the network has no layer {layer!r} to ask; it has {found}")
    return names.index(layer.lower())
