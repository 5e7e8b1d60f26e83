"""What does a PyTorch network see in a batch of images, and how do images get to it in time?

A model is a file: what pytorch-training saves, or weights that were published for torchvision's resnet50.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pickle import UnpicklingError
from typing import Any

import argosy_storage as storage
import pytorch_networks as networks
import torch
from PIL import Image, UnidentifiedImageError

from inference.arguments import ALL_GPUS, Request
from inference.devices import NoDevice, WrongImage, gpus_are
from inference.fetching import DeadImage, Fetcher
from inference.model import LABELS, UnusableModel
from inference.pipeline import PARALLEL_READS, PREFETCHED_BATCHES, Batch
from inference.sources import Picture

FILE, ENDINGS = "model.pt", (".pt", ".pth")
PUBLISHED = {"model": "resnet50", "size": 224}  # torchvision's, with the mean and deviation of ImageNet's colours
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_DAMAGED = (UnpicklingError, RuntimeError, ValueError, KeyError, TypeError, AttributeError, EOFError)


def fetched(address: str) -> tuple[bytes, str]:
    """A model's file and its labels, "" for none. Raises storage.Temporary, storage.Refused, UnusableModel."""
    file = address if address.endswith(ENDINGS) else f"{address.rstrip('/')}/{FILE}"
    folder = file.rpartition("/")[0] or "."
    try:
        data = storage.read(file)
    except storage.Missing as fault:
        raise UnusableModel(f"there is no model at {address}: {fault}") from fault
    try:
        return data, storage.read(f"{folder}/{LABELS}").decode("utf-8", "replace")
    except storage.Refused:
        return data, ""


def use(pinned: Sequence[str], device: str) -> tuple[str, str]:
    """PyTorch's name of the device, and what it is. Raises WrongImage or NoDevice."""
    there = torch.cuda.device_count()
    if device == "cpu" or not (pinned or there):
        return "cpu", "CPU"
    if pinned and tuple(pinned) != ALL_GPUS:
        if torch.version.cuda is None:
            raise WrongImage(
                f"{gpus_are(len(pinned))} pinned to this task, but this image is the CPU flavour:"
                " build it with FLAVOUR=gpu, or give --device cpu"
            )
        if there < len(pinned):
            raise NoDevice(
                f"{gpus_are(len(pinned))} pinned to this task ({', '.join(pinned)}), but PyTorch sees {there}:"
                " the driver or the NVIDIA runtime of this instance does not work"
            )
    return ("cuda:0", torch.cuda.get_device_name(0)) if there else ("cpu", "CPU")


class Classifier:
    """A loaded network, in half precision on a GPU. height, width: of the images it takes."""

    framework = "PyTorch"

    def __init__(self, model: tuple[bytes, str], request: Request, device: str) -> None:
        """model: what `fetched` gave. Raises UnusableModel."""
        data, labels = model
        about, weights = _read(data, request.model)
        self.name, self._scaled, self._device = str(about["model"]), about is PUBLISHED, device
        self.height = self.width = request.image_size or int(about["size"])
        self.precision = "float32" if device == "cpu" else "float16"
        self._network = _network(self.name, weights, request.model)
        self._network.to(device, torch.float32 if device == "cpu" else torch.float16, memory_format=torch.channels_last)
        classes = len(weights["fc.bias"])
        self.labels = labels.splitlines() or [str(number) for number in range(classes)]
        if len(self.labels) != classes:
            raise UnusableModel(
                f"the model {request.model} has {classes} classes, but {len(self.labels)} lines in {LABELS}"
            )
        torch.backends.cudnn.benchmark = True

    def top(self, images: Any, count: int) -> list[list[dict[str, object]]]:
        """For each of the images (n, height, width, 3) of 0..255 the `count` best labels, the best first."""
        with torch.inference_mode():
            given = images.to(self._device).permute(0, 3, 1, 2) / 255
            if self._scaled:
                mean, deviation = (torch.tensor(each, device=self._device)[:, None, None] for each in (MEAN, DEVIATION))
                given = (given - mean) / deviation
            exact = next(self._network.parameters()).dtype
            scores = self._network(given.to(exact, memory_format=torch.channels_last)).float().softmax(1)
            best = scores.topk(min(count, len(self.labels)))
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [
            [{"label": self.labels[k], "score": round(score, 6)} for k, score in zip(*row, strict=True)] for row in rows
        ]


def _read(data: bytes, address: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the model is, and its weights."""
    try:
        saved: dict[str, Any] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        return (PUBLISHED, saved) if "fc.weight" in saved else (saved, saved["weights"])
    except _DAMAGED as fault:
        said = str(fault).strip().splitlines() or [type(fault).__name__]
        raise UnusableModel(f"the model {address} cannot be read: {said[0]}") from fault


def _network(name: str, weights: dict[str, Any], address: str) -> Any:
    if not name.startswith("resnet"):
        raise UnusableModel(f"the model {address} is {name}, which takes no images")
    try:
        network = networks.image_network(name, len(weights["fc.bias"]))
        network.load_state_dict(weights)
    except (RuntimeError, KeyError) as fault:
        raise UnusableModel(f"the model {address} has other weights than a {name}") from fault
    return network.eval()


class Pipeline:
    """Reads `pictures` for `model`: sixteen at a time, and two batches ahead of the network."""

    def __init__(self, pictures: Sequence[Picture], model: Classifier, batch_size: int, fetcher: Fetcher) -> None:
        self._pictures, self._model, self._batch_size, self._fetcher = pictures, model, batch_size, fetcher

    def __iter__(self) -> Iterator[Batch]:
        """Raises storage.Temporary, storage.Refused."""
        with ThreadPoolExecutor(PARALLEL_READS) as readers:
            ahead: deque[tuple[Sequence[Picture], list[Any]]] = deque()
            try:
                for first in range(0, len(self._pictures), self._batch_size):
                    chosen = self._pictures[first : first + self._batch_size]
                    ahead.append((chosen, [readers.submit(self._image, each) for each in chosen]))
                    if len(ahead) > PREFETCHED_BATCHES:
                        yield _batch(*ahead.popleft())
                while ahead:
                    yield _batch(*ahead.popleft())
            finally:
                readers.shutdown(wait=False, cancel_futures=True)

    def _image(self, picture: Picture) -> tuple[Any, str]:
        """An image (height, width, 3) of bytes and "", or an empty one and why. Raises what ends the task."""
        size = self._model.width, self._model.height
        try:
            with Image.open(io.BytesIO(self._fetcher.fetch(picture))) as image:
                found = image.convert("RGB")
        except DeadImage as fault:
            return _tensor(Image.new("RGB", size)), str(fault)
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as fault:  # what Pillow raises
            return _tensor(Image.new("RGB", size)), f"not an image: {fault}"
        return _tensor(found if found.size == size else found.resize(size, Image.BICUBIC)), ""


def _tensor(image: Any) -> Any:
    return torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8).reshape(image.height, image.width, 3)


def _batch(pictures: Sequence[Picture], reading: Sequence[Any]) -> Batch:
    found = [each.result() for each in reading]
    return Batch(pictures, torch.stack([image for image, _ in found]), [error for _, error in found])
