"""The tasks of the check. They need PyTorch alone: `python task.py VERB ...`; each prints one row of JSON.

whole INDEX             computes on its GPU for a second, and compares with the CPU
speed FOLDER COUNT S    classifies four images at a time for S seconds, at the same time as COUNT - 1 others
memory LIMIT_MIB        allocates a quarter of the limit, and then twice the limit
model FILE              saves a ResNet-50 whose normalisation layers have seen images
images FOLDER COUNT     writes images of noise
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, os.getcwd())  # of the image, which has its shared modules

BATCH, PATIENCE_S, MIB = 4, 120.0, 1024**2
ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"


def whole(index: str) -> dict[str, Any]:
    began = time.time()
    left, right = (torch.rand(512, 512, generator=torch.Generator().manual_seed(seed)) for seed in (1, 2))
    expected = (left @ right).to(DEVICE)
    while time.time() < began + 1:
        product = left.to(DEVICE) @ right.to(DEVICE)
    is_right = bool(torch.allclose(product, expected, rtol=1e-2))
    return {"index": int(index), "began": began, "ended": time.time(), "right": is_right}


def speed(folder: str, count: str, seconds: str) -> dict[str, Any]:
    network, images = _network(), torch.rand(BATCH, 3, 224, 224).to(DEVICE)
    exact = torch.float16 if ON_GPU else torch.float32
    network = network.to(DEVICE, exact, memory_format=torch.channels_last).eval()
    images = images.to(exact, memory_format=torch.channels_last)
    torch.backends.cudnn.benchmark = True
    with torch.inference_mode():
        for _ in range(20 if ON_GPU else 1):
            _classified(network, images)
        _wait_for_others(Path(folder), int(count))
        done, began = 0, time.time()
        while time.time() < began + float(seconds):
            _classified(network, images)
            done += BATCH
    return {"imagesPerSecond": done / (time.time() - began)}


def _network() -> Any:
    import pytorch_networks as networks

    return networks.image_network("resnet50" if ON_GPU else "resnet-tiny", 1000)


def _classified(network: Any, images: Any) -> None:
    network(images)
    if ON_GPU:
        torch.cuda.synchronize()


def _wait_for_others(folder: Path, count: int) -> None:
    (folder / str(os.getpid())).touch()
    until = time.time() + PATIENCE_S
    while len(list(folder.iterdir())) < count:
        if time.time() > until:
            sys.exit(f"only {len(list(folder.iterdir()))} of {count} tasks run at the same time")
        time.sleep(0.01)


def memory(limit_mib: str) -> dict[str, Any]:
    sizes = {"quarter": int(limit_mib) // 4, "double": int(limit_mib) * 2}
    had = {name: _allocated(mib) if ON_GPU else None for name, mib in sizes.items()}
    return had | {"limit": os.environ.get("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "")}


def _allocated(mib: int) -> bool:
    try:
        torch.empty(mib * MIB, dtype=torch.uint8, device=DEVICE)
    except torch.cuda.OutOfMemoryError:
        return False
    return True


def model(file: str) -> dict[str, Any]:
    torch.manual_seed(1)
    network = _network()
    with torch.no_grad():
        for _ in range(20):
            network(torch.rand(4, 3, 64, 64))
    name, size = ("resnet50", 224) if ON_GPU else ("resnet-tiny", 64)
    torch.save({"model": name, "size": size, "classes": 1000, "weights": network.state_dict()}, file)
    return {"file": file}


def images(folder: str, count: str) -> dict[str, Any]:
    from PIL import Image

    for number in range(int(count)):
        noise = torch.randint(0, 256, (224 * 224 * 3,), generator=torch.Generator().manual_seed(number))
        Image.frombytes("RGB", (224, 224), bytes(noise.tolist())).save(Path(folder) / f"{number:04d}.png")
    return {"count": int(count)}


if __name__ == "__main__":
    verbs = {each.__name__: each for each in (whole, speed, memory, model, images)}
    print(json.dumps(verbs[sys.argv[1]](*sys.argv[2:])))
