"""What can be classified without a download? scikit-learn's digits as PNG files: `python examples/digits.py FOLDER`.

They are 8 x 8 pixels, named by their number, as pytorch-training has them; FOLDER/truth.json has their digits.
"""

from __future__ import annotations

import gzip
import json
import sys
from importlib.util import find_spec
from pathlib import Path

from PIL import Image


def main(folder: Path) -> None:
    package = find_spec("sklearn")
    assert package is not None, "scikit-learn, which has the digits, is not installed"
    assert package.origin is not None
    (folder / "images").mkdir(parents=True, exist_ok=True)
    with gzip.open(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", "rt") as lines:
        rows = [[int(float(cell)) for cell in line.split(",")] for line in lines]
    for number, row in enumerate(rows):
        image = Image.new("L", (8, 8))
        image.putdata([round(grey * 255 / 16) for grey in row[:-1]])
        image.save(folder / "images" / f"{number:04d}.png")
    (folder / "truth.json").write_text(json.dumps([row[-1] for row in rows]) + "\n")
    print(f"{len(rows)} images: {folder / 'images'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
