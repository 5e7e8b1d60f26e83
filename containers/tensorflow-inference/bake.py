"""Which model does the image bring along? One of keras.applications with its ImageNet weights, put in at build time.

    python bake.py --network MobileNetV2 --out /model       downloads the weights; needs the network
    python bake.py --network "" --out /model                makes an empty folder: the model then comes by --model

The exported model takes pixels 0..255 and scales them as its network needs them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

# Name -> module of keras.applications with its preprocess_input, and the size of its images.
NETWORKS = {
    "MobileNet": ("mobilenet", 224),
    "MobileNetV2": ("mobilenet_v2", 224),
    "ResNet50": ("resnet50", 224),
    "EfficientNetB0": ("efficientnet", 224),
    "InceptionV3": ("inception_v3", 299),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--network", default="", choices=["", *NETWORKS])
    parser.add_argument("--weights", default="imagenet", help="imagenet, or none for random ones")
    parser.add_argument("--out", type=Path, default=Path("/model"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.network:
        export(given.network, None if given.weights == "none" else given.weights, given.out)
    return 0


def export(network: str, weights: str | None, folder: Path) -> None:
    import keras

    module_name, size = NETWORKS[network]
    module = getattr(keras.applications, module_name)
    images = keras.Input((size, size, 3), name="images")
    scores = getattr(module, network)(weights=weights)(module.preprocess_input(images))
    keras.Model(images, scores).export(os.fspath(folder), verbose=False)
    (folder / "labels.txt").write_text("".join(f"{label}\n" for label in labels(keras, weights)))


def labels(keras: Any, weights: str | None) -> list[str]:
    """ImageNet's words, from the file that keras.applications decodes its predictions with."""
    if weights is None:
        return [str(number) for number in range(1000)]
    import numpy as np

    decode = keras.applications.imagenet_utils.decode_predictions
    decode(np.zeros((1, 1000)))  # fetches the file into Keras's cache
    index = json.loads((Path(keras.config.keras_home()) / "models" / "imagenet_class_index.json").read_text())
    return [index[str(number)][1] for number in range(1000)]


if __name__ == "__main__":
    sys.exit(main())
