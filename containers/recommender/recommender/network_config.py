"""Which network does a DSSTNE config describe? The keys of its MovieLens sample, its 3 x 1024 benchmark, its guide.

As in DSSTNE, keys and names are read without regard to case. Everything else is refused by name, all faults at once:
a key that is silently ignored is a network that is silently another.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recommender.faults import BadInput

ACTIVATIONS = {"sigmoid": "sigmoid", "relu": "relu", "rectifiedlinear": "relu", "tanh": "tanh", "linear": "linear"}
SCHEMES = ("Xavier", "Gaussian", "Uniform", "Constant")
ERRORS = ("ScaledMarginalCrossEntropy", "CrossEntropy")
KINDS = ("Input", "Hidden", "Output")
NETWORK_KEYS = (
    "Version",
    "Name",
    "Kind",
    "SparsenessPenalty",
    "ShuffleIndices",
    "Denoising",
    "ScaledMarginalCrossEntropy",
    "Layers",
    "ErrorFunction",
)
_DENSE = ("Type", "Source", "Activation", "WeightInit")
LAYER_KEYS = {
    "Input": ("Name", "Kind", "N", "DataSet", "Sparse"),
    "Hidden": ("Name", "Kind", "N", "Sparse", "pDropout", *_DENSE),
    "Output": ("Name", "Kind", "N", "DataSet", "Sparse", *_DENSE),
}


@dataclass(frozen=True)
class Layer:
    """A fully connected layer. size: 0 = "auto". sparse: of a hidden layer, whether the sparseness penalty counts."""

    name: str
    size: int
    activation: str
    sparse: bool
    dropout: float
    scheme: str
    scale: float
    bias: float


@dataclass(frozen=True)
class Network:
    """penalty: (p, beta) or None. Marginal: outputs beyond `one_target` and `zero_target` cost nothing."""

    layers: tuple[Layer, ...]  # hidden ones, then the output
    input_size: int
    penalty: tuple[float, float] | None
    denoising: float
    shuffle: bool
    one_target: float = 1.0
    zero_target: float = 0.0
    one_scale: float = 1.0
    zero_scale: float = 1.0


@dataclass
class _Reader:
    """Collects faults; `node` reads one JSON object with its known keys, whatever their case."""

    faults: list[str] = field(default_factory=list)

    def fault(self, path: str, sentence: str) -> None:
        self.faults.append(f"{path}: {sentence}")

    def node(self, given: Any, path: str, known: Sequence[str]) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            self.fault(path or "the config", "must be an object")
            return {}
        names = {name.lower(): name for name in known}
        for key in given:
            if key.lower() not in names:
                near = difflib.get_close_matches(key.lower(), names, 1)
                hint = f"did you mean {names[near[0]]}?" if near else f"there is {', '.join(known)}"
                self.fault(_join(path, key), f"is not a key that is supported here; {hint}")
        return {names[key.lower()]: value for key, value in given.items() if key.lower() in names}

    def number(self, given: Mapping[str, Any], path: str, key: str, default: float, low: float, high: float) -> float:
        value = given.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            bounds = f" from {low:g} to {high:g}" if math.isfinite(high) else f" of {low:g} or more"
            self.fault(_join(path, key), f"must be a number{bounds if math.isfinite(low) else ''}")
            return default
        return float(value)

    def flag(self, given: Mapping[str, Any], path: str, key: str, default: bool) -> bool:
        value = given.get(key, default)
        if not isinstance(value, bool):
            self.fault(_join(path, key), "must be true or false")
        return bool(value)

    def choice(self, given: Mapping[str, Any], path: str, key: str, allowed: Sequence[str], default: str) -> str:
        value = given.get(key, default)
        found = {name.lower(): name for name in allowed}.get(str(value).lower())
        if found is None:
            self.fault(_join(path, key), f"{value!r} is not among {', '.join(allowed)}")
            return default
        return found


def parse(text: str) -> Network:
    """Raises BadInput with every fault."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise BadInput(f"the config is not JSON: {error}") from error
    read = _Reader()
    network = _network(read, read.node(document, "", NETWORK_KEYS))
    if read.faults:
        raise BadInput(*(f"config: {fault}" for fault in read.faults))
    return network


def _network(read: _Reader, given: Mapping[str, Any]) -> Network:
    read.choice(given, "", "Kind", ("FeedForward",), "FeedForward")
    read.number(given, "", "Version", 0.8, 0, math.inf)
    read.choice(given, "", "ErrorFunction", ERRORS, ERRORS[0])
    penalty = given.get("SparsenessPenalty")
    inside = read.node(penalty or {}, "SparsenessPenalty", ("p", "beta"))
    share = read.number(inside, "SparsenessPenalty", "p", 0.5, 0.001, 0.999)
    beta = read.number(inside, "SparsenessPenalty", "beta", 2.0, 0, math.inf)
    denoising = read.node(given.get("Denoising", {}), "Denoising", ("p",))
    margins = _margins(read, given)
    first, layers = _layers(read, given.get("Layers"))
    return Network(
        layers=layers,
        input_size=first,
        penalty=None if penalty is None else (share, beta),
        denoising=read.number(denoising, "Denoising", "p", 0.0, 0, 0.99),
        shuffle=read.flag(given, "", "ShuffleIndices", False),
        **margins,
    )


def _margins(read: _Reader, given: Mapping[str, Any]) -> dict[str, float]:
    path = "ScaledMarginalCrossEntropy"
    names = {"oneTarget": 1.0, "zeroTarget": 0.0, "oneScale": 1.0, "zeroScale": 1.0}
    inside = read.node(given.get(path, {}), path, tuple(names))
    found = {
        name: read.number(inside, path, name, default, 0, 1 if name.endswith("Target") else math.inf)
        for name, default in names.items()
    }
    if str(given.get("ErrorFunction", path)).lower() == "crossentropy":
        found = names  # plain: without margins and scales
    return {f"{name.removesuffix(end)}_{end.lower()}": found[name] for name in names for end in _ends(name)}


def _ends(name: str) -> Iterator[str]:
    yield from (end for end in ("Target", "Scale") if name.endswith(end))


def _layers(read: _Reader, given: Any) -> tuple[int, tuple[Layer, ...]]:
    if not isinstance(given, list) or len(given) < 3:
        read.fault("Layers", "must be a list of an Input layer, Hidden layers and an Output layer")
        return 0, ()
    made: list[Layer] = []
    for place, each in enumerate(given):
        wanted = KINDS[0] if place == 0 else KINDS[2] if place == len(given) - 1 else KINDS[1]
        path = f"Layers[{place}]"
        inside = read.node(each, path, LAYER_KEYS[wanted])
        kind = read.choice(inside, path, "Kind", KINDS, wanted)
        if kind != wanted:
            read.fault(
                _join(path, "Kind"),
                f"{kind} is in the place of an {wanted} layer"
                if wanted != "Hidden"
                else f"{kind} is in the place of a Hidden layer",
            )
        if place and made:
            _check_source(read, inside, path, made[-1].name)
        made.append(_layer(read, inside, path, wanted))
    return made[0].size, tuple(made[1:])


def _check_source(read: _Reader, given: Mapping[str, Any], path: str, before: str) -> None:
    source = given.get("Source", before)
    if source not in (before, [before]):
        read.fault(_join(path, "Source"), f"only the layer before, {before}, can be the source here, not {source!r}")


def _layer(read: _Reader, given: Mapping[str, Any], path: str, kind: str) -> Layer:
    read.choice(given, path, "Type", ("FullyConnected",), "FullyConnected")
    weights = read.node(given.get("WeightInit", {}), f"{path}.WeightInit", ("Scheme", "Scale", "Bias"))
    activation = str(given.get("Activation", "Sigmoid")).lower()
    allowed = ACTIVATIONS if kind == "Hidden" else {"sigmoid": "sigmoid"}
    if activation not in allowed:
        names = "Sigmoid, Relu, Tanh, Linear" if kind == "Hidden" else "Sigmoid (of an Output layer)"
        read.fault(_join(path, "Activation"), f"{given['Activation']!r} is not among {names}")
    if kind != "Hidden" and not isinstance(given.get("DataSet"), str):
        read.fault(_join(path, "DataSet"), "must name a data set")
    init = f"{path}.WeightInit"
    return Layer(
        name=str(given.get("Name", kind)),
        size=_size(read, given, path, kind),
        activation=allowed.get(activation, "sigmoid"),
        sparse=read.flag(given, path, "Sparse", False),
        dropout=read.number(given, path, "pDropout", 0.0, 0, 0.99),
        scheme=read.choice(weights, init, "Scheme", SCHEMES, "Xavier"),
        scale=read.number(weights, init, "Scale", 1.0, 0, math.inf),
        bias=read.number(weights, init, "Bias", 0.0, -math.inf, math.inf),
    )


def _size(read: _Reader, given: Mapping[str, Any], path: str, kind: str) -> int:
    size = given.get("N", "auto" if kind != "Hidden" else None)
    if kind != "Hidden" and size == "auto":
        return 0
    if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= 10_000_000:
        read.fault(_join(path, "N"), "must be a whole number from 1 on" + (' or "auto"' if kind != "Hidden" else ""))
        return 0
    return size


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
