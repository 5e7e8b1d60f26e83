"""What can be classified without a download? Scikit-learn's digits as PNG files, and a small CNN trained on half.

    python examples/digits.py out/           needs TensorFlow and scikit-learn; writes out/images/ and out/model/

`images/` holds 1,797 files of 8 x 8 pixels, named by their number, and `truth.json` their digits; `model/` is a
SavedModel with its labels, trained on images 0 to 899.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

TRAINING = 900
EPOCHS = 15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    from sklearn.datasets import load_digits

    digits = load_digits()
    pixels, labels = digits.images * (255 / 16), digits.target
    import tensorflow as tf

    count = write_images(tf, pixels, folder / "images")
    (folder / "truth.json").write_text(json.dumps(labels.tolist()) + "\n")
    began = time.monotonic()
    model = train(pixels[:TRAINING], labels[:TRAINING])
    model.export(os.fspath(folder / "model"), verbose=False)
    (folder / "model" / "labels.txt").write_text("".join(f"{digit}\n" for digit in range(10)))
    print(f"{count} images; a CNN trained on {TRAINING} of them in {time.monotonic() - began:.1f} s: {folder}")
    return 0


def write_images(tf: Any, pixels: Any, folder: Path) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    for number, image in enumerate(pixels.round().astype("uint8")[..., None]):
        (folder / f"{number:04d}.png").write_bytes(tf.io.encode_png(image).numpy())
    return len(pixels)


def train(images: Any, labels: Any) -> Any:
    """The network scales by itself: it takes 0..255, as every model of this program does."""
    import keras
    from keras import layers

    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            layers.Input((8, 8, 1), name="images"),
            layers.Rescaling(1 / 255),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(images[..., None].astype("float32"), labels, epochs=EPOCHS, batch_size=32, verbose=0)
    return model


if __name__ == "__main__":
    sys.exit(main())
