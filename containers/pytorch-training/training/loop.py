"""Train, measure, and stop in good order: rounds of steps, of which all processes do the same ones.

With several processes each step ends in an all-reduce, so none may stop by itself: after each round they agree. Reading
the loss ends a round: until then a GPU may still be at work.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import argosy_storage as storage
import pytorch_networks as networks
import torch
from torch import distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from training import checkpoints, data, places
from training.arguments import Request
from training.places import Place

SEED = 1


@dataclass(frozen=True)
class Round:
    """Some steps and their time."""

    steps: int
    seconds: float


class Training:
    """One process's part. `step` counts from the very first attempt on."""

    def __init__(self, request: Request, place: Place, stopped: threading.Event) -> None:
        """Raises data.NoData, places.WrongImage."""
        self.request, self.place, self._stopped = request, place, stopped
        torch.manual_seed(SEED)
        torch.backends.cudnn.benchmark = True
        self.precision = places.precision(torch, request, place)
        self.source = data.source(torch, request, place.device, place.rank)
        self.network = network(request, data.classes(request)).to(place.device)
        if request.unit == "images":
            self.network = self.network.to(memory_format=torch.channels_last)
        self._optimizer = optimizer(self.network, request)
        self._plain = self.network
        if place.world > 1:
            self._plain = DistributedDataParallel(self.network, [place.rank] if place.on_gpu else None)
        self.compiled = _is_to_compile(request, place)
        self._model = torch.compile(self._plain) if self.compiled else self._plain
        self.step = self.resumed = 0
        self.losses: list[float] = []
        self.checkpoint_s, self._kept_at = 0.0, time.monotonic()

    @property
    def work(self) -> dict[str, Any]:
        return self.request.work(self.place.world)

    @property
    def units_per_step(self) -> int:
        """Images or tokens of all processes."""
        each = self.request.size if self.request.unit == "tokens" else 1
        return self.request.batch_size * each * self.place.world

    def resume(self) -> None:
        """Continue after the newest checkpoint. Raises storage.Temporary."""
        found = checkpoints.find(torch, self.request, self.work)
        if found is not None:
            address, state = found
            if state["step"] >= self.request.steps:
                raise storage.Refused(f"{address} is after step {state['step']}, and --steps asks for no more")
            self.network.load_state_dict(state["network"])
            groups = self._optimizer.state_dict()["param_groups"]
            self._optimizer.load_state_dict({"state": state["optimizer"], "param_groups": groups})
            self.step = self.resumed = state["step"]
            self._say(f"continues after step {self.step} of {self.request.steps}, from {address}")
        if self._agreed(self.step) != self.step:
            raise storage.Temporary("the processes have read different checkpoints")

    def first(self) -> Round:
        """The first step, which compiles."""
        try:
            return self.round(1)
        except RuntimeError as fault:
            if not self.compiled or self.request.compile == "on" or isinstance(fault, torch.cuda.OutOfMemoryError):
                raise
            said = str(fault).strip().splitlines() or [type(fault).__name__]
            self._say(f"torch.compile does not work here, so the network is not compiled: {said[0]}")
        self._model, self.compiled = self._plain, False
        return self.round(1)

    def round(self, steps: int) -> Round:
        """At most this many steps; fewer at the end, and if one process alone is stopped."""
        began, first, loss = time.monotonic(), self.step, None
        for _ in range(min(steps, self.request.steps - first)):
            loss = self._train()
            if self.place.world == 1 and self._stopped.is_set():
                break
        if loss is not None:
            self.losses.append(float(loss))
        return Round(self.step - first, time.monotonic() - began)

    def _train(self) -> Any:
        examples, wanted = self.source.batch(self.step)
        kind = "cuda" if self.place.on_gpu else "cpu"
        with torch.autocast(kind, dtype=torch.bfloat16, enabled=self.precision == "bf16"):
            loss = functional.cross_entropy(self._model(examples).flatten(0, -2), wanted.flatten())
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()
        self.step += 1
        return loss.detach()

    def is_stopped(self) -> bool:
        """Whether any process was stopped. All of them have to ask after the same step."""
        return bool(self._agreed(int(self._stopped.is_set())))

    def _agreed(self, number: int) -> int:
        """The largest of all processes."""
        if self.place.world == 1:
            return number
        given = torch.tensor([number], device=self.place.device)
        distributed.all_reduce(given, distributed.ReduceOp.MAX)
        return int(given)

    def keep_if_due(self) -> None:
        """Trouble is said, not raised: the training continues."""
        if self.request.checkpoints and time.monotonic() - self._kept_at >= self.request.checkpoint_seconds:
            try:
                self._say(f"kept step {self.step}: {self.keep()}")
            except (storage.Temporary, storage.Refused) as fault:
                self._say(f"step {self.step} is not kept: {fault}")
            self._kept_at = time.monotonic()

    def keep(self) -> str:
        """The address. The first process's state is that of all. Raises storage.Temporary or storage.Refused."""
        if self.place.rank:
            return ""
        began = time.monotonic()
        kept = {"network": self.network.state_dict(), "optimizer": self._optimizer.state_dict()["state"]}
        state = {"work": self.work, "step": self.step, **kept}  # no floats: PyTorch 1.13 would not read them again
        address = checkpoints.save(torch, self.request, state)
        self.checkpoint_s += time.monotonic() - began
        return address

    def accuracy(self) -> float | None:
        """The share of held-out images that the network labels as they are; None without a real set of images."""
        if not isinstance(self.source, data.Digits):
            return None
        images, labels = self.source.held_out()
        self.network.eval()
        with torch.no_grad():
            return float((self.network(images).argmax(1) == labels).float().mean())

    def tell(self, done: Round, text: str) -> None:
        speed = self.units_per_step * done.steps / done.seconds
        self._say(
            f"step {self.step} of {self.request.steps}: loss {self.losses[-1]:.3f},"
            f" {speed:.1f} {self.request.unit}/s{text}"
        )

    def _say(self, text: str) -> None:
        if not self.place.rank:
            print(text, flush=True)


def run(training: Training, age_s: Callable[[], float]) -> dict[str, Any] | None:
    """The record; None if the task was stopped. age_s: seconds since the program began."""
    request = training.request
    training.resume()
    warm_up, start_up_s = [training.first()], age_s()
    rounds: list[Round] = []
    while training.step < request.steps and not training.is_stopped():
        training.keep_if_due()
        left = request.warm_up - sum(each.steps for each in warm_up)
        done = training.round(min(left, request.steps_per_round) if left > 0 else request.steps_per_round)
        (warm_up if left > 0 else rounds).append(done)
        training.tell(done, " (warm-up)" if left > 0 else "")
    if training.step < request.steps:
        return None
    timed = rounds or [each for each in warm_up if each.steps]
    return record(training, timed, start_up_s, sum(each.seconds for each in warm_up[1:])) | {"totalSeconds": age_s()}


def record(training: Training, rounds: list[Round], start_up_s: float, warm_up_s: float) -> dict[str, Any]:
    """What `argosy report benchmark` reads, and what the training came to."""
    request, place, unit = training.request, training.place, training.request.unit
    seconds = sum(each.seconds for each in rounds)
    units = training.units_per_step * sum(each.steps for each in rounds)
    speeds = [training.units_per_step * each.steps / each.seconds for each in rounds]
    share = f" (share of {request.share_mib} MiB)" if request.share_mib else ""
    return {
        "record": "argosy-benchmark/1",
        "unit": unit,
        "setting": {
            "framework": "PyTorch",
            "model": request.model,
            "data": request.data,
            "image size" if unit == "images" else "sequence": str(request.size),
            "precision": training.precision,
            "compiled": "yes" if training.compiled else "no",
            "emulated": "no" if place.on_gpu else "yes",
        },
        "gpus": place.world,
        "gpuNames": [f"{place.kind}{share}"] * place.world,
        "pinnedGpus": [each for each in request.gpus if each != "all"],
        "batchPerGpu": request.batch_size,
        unit: units,
        f"{unit}PerSecond": units / seconds if seconds else 0.0,
        "deviation": statistics.stdev(speeds) if len(speeds) > 1 else 0.0,
        "startUpSeconds": start_up_s,
        "warmUpSeconds": warm_up_s,
        "timedSeconds": seconds,
        "checkpointSeconds": training.checkpoint_s,
        "steps": training.step,
        "resumedAfter": training.resumed,
        "loss": training.losses[-1] if training.losses else None,
        "accuracy": training.accuracy(),
        "peakMemoryMib": torch.cuda.max_memory_allocated(place.device) >> 20 if place.on_gpu else None,
        "torch": torch.__version__,
        "attempt": request.attempt,
    }


def network(request: Request, classes: int) -> Any:
    if request.unit == "tokens":
        return networks.text_network(request.model, data.VOCABULARY, request.size)
    return networks.image_network(request.model, classes)


def optimizer(network: Any, request: Request) -> Any:
    if request.unit == "tokens":
        return torch.optim.AdamW(network.parameters(), request.learning_rate)
    return torch.optim.SGD(network.parameters(), request.learning_rate, momentum=0.9)


def _is_to_compile(request: Request, place: Place) -> bool:
    if request.compile == "on" and not hasattr(torch, "compile"):
        raise places.WrongImage(f"PyTorch {torch.__version__} has no torch.compile: leave --compile out")
    return request.compile == "on" or (request.compile == "auto" and place.on_gpu and hasattr(torch, "compile"))


@contextlib.contextmanager
def together(place: Place, store: str) -> Any:
    """Inside, the processes can reduce their gradients. store: an address of PyTorch's, `env://` under torchrun."""
    if place.world == 1:
        yield
        return
    if place.on_gpu:
        torch.cuda.set_device(place.device)
    backend = "nccl" if place.on_gpu else "gloo"
    distributed.init_process_group(backend, init_method=store, rank=place.rank, world_size=place.world)
    try:
        yield
    finally:
        distributed.destroy_process_group()
