"""What does each verb do? Reads the files or s3:// and http(s):// addresses that its flags name, and writes its
output."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

import argosy_storage as storage

from recommender import fetching, ratings, text_data
from recommender.faults import BadInput
from recommender.flags import UNUSED, read_flags

NO_GPUS = ("", "none", "void", "all")  # what names no particular GPU


def run(arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """One command line, `mpirun -np N` before it allowed. Raises BadInput, NoDevice, storage.Temporary or .Refused."""
    wanted, words = without_mpirun(list(arguments))
    verb = words[0] if words else ""
    given = read_flags(verb, words[1:])
    if wanted is not None and verb != "train":
        raise BadInput(f"mpirun is for train, not for {verb}")
    if verb == "train":
        _train(given, environment, wanted)
    else:
        _OTHERS[verb](given, environment)


def gpus_of(environment: Mapping[str, str]) -> tuple[str, ...]:
    named = environment.get("NVIDIA_VISIBLE_DEVICES", "")
    return () if named in NO_GPUS else tuple(named.split(","))


def without_mpirun(words: list[str]) -> tuple[int | None, list[str]]:
    """As with MPI, one process a GPU; here only their number counts."""
    if words[:1] != ["mpirun"]:
        return None, words
    if len(words) < 4 or words[1] != "-np" or not re.fullmatch("[1-9][0-9]?", words[2]):
        raise BadInput("of mpirun only `mpirun -np NUMBER VERB ...` is understood")
    return int(words[2]), words[3:]


def _write_once(address: str, data: bytes, environment: Mapping[str, str], what: str) -> None:
    attempt = environment.get("ARGOSY_TASK_ATTEMPT", "1")
    written = storage.write_once(address, data, {"argosy-attempt": attempt})
    print(f"{what} {'written to' if written else 'was already at'} {address}", flush=True)


def _index(address: str) -> text_data.Index:
    return text_data.read_index(fetching.text(address), address)


def _generate_netcdf(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    features = {} if given.c else _index(given.f)
    samples = _index(given.s) if fetching.exists(given.s) else {}
    before = len(features), len(samples)
    data = text_data.read_data(fetching.text(given.i), given.i, given.d, features, samples, grow=given.c or given.m)
    storage.write(given.o, text_data.to_bytes(data))
    for address, index, old in ((given.f, features, before[0]), (given.s, samples, before[1])):
        if given.c or len(index) != old:
            storage.write(address, text_data.index_text(index).encode())
    print(f"{given.o}: {len(data)} samples, {data.width} features, {len(data.features)} of them set", flush=True)


def _train(given: argparse.Namespace, environment: Mapping[str, str], wanted: int | None) -> None:
    """Cheap checks come before TensorFlow."""
    from recommender import devices
    from recommender.network_config import parse

    for name in UNUSED:
        if getattr(given, name) is not None:
            print(f"-{name} is not used: the optimiser here is Adam", flush=True)
    config = fetching.text(given.c)
    parse(config)
    if not storage.is_s3(given.n) and fetching.exists(given.n):
        raise BadInput(f"-n: the network file {given.n} is there already")
    inputs, outputs = (text_data.from_bytes(storage.read(each), each) for each in (given.i, given.o))
    if len(inputs) != len(outputs):
        raise BadInput(f"{given.i} has {len(inputs)} samples, {given.o} has {len(outputs)}")
    import tensorflow as tf

    found = devices.find(tf, gpus_of(environment), wanted, _cpu_devices(environment))
    batch = _shared_evenly(given.b, len(inputs), len(found))
    from recommender import network

    learning = network.Hyperparameters(batch, given.e, given.alpha, given.decay)
    trained = network.train(tf, config, inputs, outputs, learning, found)
    _write_once(given.n, network.to_bytes(trained), environment, "network")


def _shared_evenly(batch: int, samples: int, devices: int) -> int:
    """Samples of a batch: Keras refuses a first one whose parts are not the same size on all devices."""
    if batch < devices:
        raise BadInput(f"-b {batch}: a batch needs at least one sample for each of {devices} devices")
    if samples < devices:
        raise BadInput(f"too few samples ({samples}) for {devices} devices: each needs at least one")
    found = min(batch, samples) // devices * devices
    if found < batch and devices > 1:
        print(f"batches of {found} samples in place of {batch}, as many for each of {devices} devices", flush=True)
    return found if devices > 1 else batch


def _cpu_devices(environment: Mapping[str, str]) -> int:
    text = environment.get("CPU_DEVICES", "0")
    if not re.fullmatch("[0-4]", text):
        raise BadInput(f"CPU_DEVICES {text!r} is not a number from 0 to 4")
    return int(text)


def _predict(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    from recommender.predicting import Question, read_filter, read_form, recommend

    question = Question(given.l, given.k, given.b, read_form(given.p))
    features, wanted = _index(given.i), _index(given.o)
    samples: text_data.Index = {}
    data = text_data.read_data(fetching.text(given.r), given.r, given.d, features, samples, grow=False)
    removed = read_filter(fetching.text(given.f), given.f, wanted, samples)
    stored = storage.read(given.n)
    import tensorflow as tf

    if not gpus_of(environment):
        tf.config.set_visible_devices([], "GPU")
    from recommender import network

    trained = network.from_bytes(stored, given.n)
    rows = recommend(tf, trained, data, samples, wanted, removed, question)
    text = "".join(text_data.lines_of(rows))
    _write_once(given.s, text.encode(), environment, f"recommendations to {len(samples)} samples")


def _generate_ratings(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    if given.f < 40 * given.c:
        raise BadInput(f"-f {given.f} -c {given.c}: a cluster needs 40 features or more")
    kept, held = ratings.generate(given.s, given.f, given.c)
    storage.write(given.o, kept.encode())
    storage.write(given.t, held.encode())
    print(
        f"{given.s} samples over {given.f} features in {given.c} clusters: {given.o}; held out: {given.t}", flush=True
    )


def _recall(given: argparse.Namespace, environment: Mapping[str, str]) -> None:
    recommended, data, held_out = (fetching.text(each) for each in (given.s, given.r, given.t))
    found, popular = ratings.recall(recommended, data, held_out, given.k)
    print(f"recall@{given.k} {found:.3f}, of popularity {popular:.3f}", flush=True)


_OTHERS: dict[str, Any] = {
    "generateNetCDF": _generate_netcdf,
    "predict": _predict,
    "generateRatings": _generate_ratings,
    "recall": _recall,
}
