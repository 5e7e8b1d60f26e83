"""The recommender with TensorFlow: it finds films that popularity misses, on one device and on several; and how it
ends."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.tf
FOLDER = Path(__file__).resolve().parents[2] / "containers" / "recommender"
MOVIELENS = FOLDER / "examples" / "movielens.json"
K = 10
MARGIN = 0.25  # of recall@10 over that of popularity, which is about 0.04 here; measured 0.39
PATIENCE_S = 900  # TensorFlow's start takes ten seconds of CPU time, and the machine may be busy
LEARN = ["-b", "64", "-e", "15", "-alpha", "0.005"]


@pytest.fixture(scope="module")
def program() -> Iterator[Any]:
    """The program's modules in this process: TensorFlow takes a process ten seconds to load."""
    sys.path.insert(0, str(FOLDER))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    names = ("faults", "network", "network_config", "predicting", "ratings", "text_data", "verbs")
    yield SimpleNamespace(**{name: importlib.import_module(f"recommender.{name}") for name in names})
    sys.path.remove(str(FOLDER))
    for name in [each for each in sys.modules if each.partition(".")[0] == "recommender"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def home(program: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ratings with eight planted clusters, and the data sets made from them."""
    folder = tmp_path_factory.mktemp("recommender")
    verb(program, folder, "generateRatings -o data -t held-out -s 1000 -f 400 -c 8")
    for what in ("input", "output"):
        line = f"generateNetCDF -d gl_{what} -i data -o gl_{what}.nc -f features_{what} -s samples_input -c"
        verb(program, folder, line)
    return folder


def verb(program: Any, folder: Path, line: str, **environment: str) -> None:
    """One command line in `folder`."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        program.verbs.run(line.split(), environment)
    finally:
        os.chdir(before)


def train(program: Any, home: Path, name: str, *more: str, config: Path = MOVIELENS) -> None:
    words = ["train", "-c", str(config), "-i", "gl_input.nc", "-o", "gl_output.nc", "-n", name, *more]
    verb(program, home, " ".join(words))


def predict(program: Any, home: Path, network: str, recs: str, *more: str) -> dict[str, list[tuple[str, float]]]:
    line = f"predict -b 256 -d gl -i features_input -o features_output -n {network} -f data -s {recs} -r data"
    verb(program, home, " ".join([line, *more]))
    rows = {}
    for row in (home / recs).read_text().splitlines():
        sample, _, found = row.partition("\t")
        assert found.endswith(":")
        pairs = [each.split(",") for each in found[:-1].split(":")]
        rows[sample] = [(feature, float(score)) for feature, score in pairs]
    return rows


@pytest.fixture(scope="module")
def trained(program: Any, home: Path) -> str:
    train(program, home, "gl.nc", *LEARN)
    return "gl.nc"


def test_recall_at_ten_beats_popularity_by_the_stated_margin(program: Any, home: Path, trained: str) -> None:
    rows = predict(program, home, trained, "recs", "-k", str(K))
    assert len(rows) == 1000
    texts = [(home / name).read_text() for name in ("recs", "data", "held-out")]
    found, popular = program.ratings.recall(*texts, K)
    assert found >= popular + MARGIN


def test_recommendations_come_best_first_and_never_name_what_the_filter_removes(
    program: Any, home: Path, trained: str
) -> None:
    rows = predict(program, home, trained, "recs-3", "-k", "3", "-p", "7.5f")
    seen = dict(program.text_data.records((home / "data").read_text(), "data"))
    for sample, pairs in rows.items():
        assert len(pairs) == 3
        assert [score for _, score in pairs] == sorted((score for _, score in pairs), reverse=True)
        assert not {feature for feature, _ in pairs} & set(seen[sample])
    assert re.search(r",0\.[0-9]{5}:", (home / "recs-3").read_text())


def test_there_are_never_more_recommendations_than_features_left(program: Any, home: Path, trained: str) -> None:
    rows = predict(program, home, trained, "recs-all", "-k", "9999")
    seen = dict(program.text_data.records((home / "data").read_text(), "data"))
    assert all(len(pairs) == 400 - len(seen[sample]) for sample, pairs in rows.items())


def test_another_layer_gives_its_units_activations(program: Any, home: Path, trained: str) -> None:
    rows = predict(program, home, trained, "hidden", "-l", "hidden")
    assert [unit for unit, _ in rows["user0"]] == [str(unit) for unit in range(128)]
    assert all(0 <= value <= 1 for _, value in rows["user0"])
    with pytest.raises(program.faults.BadInput, match="no layer 'Middle' to ask; it has Hidden, Output"):
        predict(program, home, trained, "none", "-l", "Middle")


def test_training_is_repeatable(program: Any, home: Path) -> None:
    import numpy as np

    stored = []
    for name in ("once.nc", "twice.nc"):
        train(program, home, name, "-b", "256", "-e", "1")
        with np.load(home / name) as arrays:
            stored.append(arrays["weights0"])
    assert np.array_equal(*stored)


def test_the_benchmarks_and_the_guides_networks_train(program: Any, home: Path) -> None:
    for name in ("benchmark", "two-hidden"):
        document = json.loads((FOLDER / "examples" / f"{name}.json").read_text())
        for layer in document["Layers"][1:-1]:
            layer["N"] = 16  # the shape, not the size
        small = home / f"{name}.json"
        small.write_text(json.dumps(document))
        train(program, home, f"{name}.nc", "-b", "256", "-e", "1", config=small)
        assert len(predict(program, home, f"{name}.nc", f"{name}.recs", "-k", "2")["user0"]) == 2


@pytest.mark.parametrize(
    ("chance", "truth", "expected"),
    [(0.5, 1.0, 2 * 0.6931), (0.95, 1.0, 0.0), (0.5, 0.0, 3 * 0.6931), (0.05, 0.0, 0.0)],
)
def test_the_error_is_scaled_and_nothing_beyond_its_margins(
    program: Any, chance: float, truth: float, expected: float
) -> None:
    import math

    import numpy as np

    network = program.network_config.Network((), 0, None, 0.0, False, 0.9, 0.1, 2.0, 3.0)
    logit = math.log(chance / (1 - chance))
    error = program.network.loss(network)(np.array([[truth]], "float32"), np.array([[logit]], "float32"))
    assert float(error[0]) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d["Layers"][0].update(N=9), "the Input layer has N 9, but the data have 400 features"),
        (lambda d: d["Layers"][2].update(N=9), "the Output layer has N 9"),
    ],
)
def test_a_config_of_another_size_than_the_data_is_refused(
    program: Any, home: Path, tmp_path: Path, change: Any, complaint: str
) -> None:
    document = json.loads(MOVIELENS.read_text())
    change(document)
    (tmp_path / "c.json").write_text(json.dumps(document))
    with pytest.raises(program.faults.BadInput, match=complaint):
        train(program, home, "never.nc", config=tmp_path / "c.json")
    assert not (home / "never.nc").exists()


def test_a_training_that_diverges_is_reported_and_leaves_no_network(program: Any, home: Path) -> None:
    document = json.loads(MOVIELENS.read_text())
    document["Layers"][1]["Activation"] = "Linear"
    del document["SparsenessPenalty"]
    (home / "linear.json").write_text(json.dumps(document))
    with pytest.raises(program.faults.BadInput, match=r"the training diverged: the error is (nan|inf) after epoch"):
        train(program, home, "diverged.nc", "-b", "64", "-e", "9", "-alpha", "1e38", config=home / "linear.json")
    assert not (home / "diverged.nc").exists()


@pytest.mark.parametrize("stored", [b"", b"CDF\x01", b"PK\x03\x04"])
def test_what_is_no_network_is_refused(program: Any, stored: bytes) -> None:
    with pytest.raises(program.faults.BadInput, match="x is no network of this program's train"):
        program.network.from_bytes(stored, "x")


def test_a_network_of_other_features_is_refused(program: Any, home: Path, trained: str) -> None:
    (home / "few").write_text("item1\t0\nitem2\t1\n")
    line = f"predict -d gl -i few -o features_output -n {trained} -f data -s never -r data -k 3"
    with pytest.raises(program.faults.BadInput, match=r"from 400 to 400 features, .* have 2 and 400"):
        verb(program, home, line)


def test_input_and_output_must_have_the_same_samples(program: Any, home: Path) -> None:
    (home / "one").write_text("user0\titem1\n")
    verb(program, home, "generateNetCDF -d gl -i one -o one.nc -f one-features -s one-samples -c")
    with pytest.raises(program.faults.BadInput, match=r"gl_input.nc has 1000 samples, one.nc has 1"):
        verb(program, home, f"train -c {MOVIELENS} -i gl_input.nc -o one.nc -n never.nc")


# --- as processes: several devices, the chain, signals ----------------------------------------------------------------


def start(home: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    return subprocess.Popen(
        [sys.executable, "-m", "recommender", *arguments],
        cwd=home,
        env=clean | {"PYTHONPATH": str(FOLDER)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


TRAIN = f"train -c {MOVIELENS} -i gl_input.nc -o gl_output.nc"


@pytest.mark.parametrize("count", [2, 4])
def test_several_devices_learn_as_well_as_one(program: Any, home: Path, count: int) -> None:
    """Logical CPU devices behind MirroredStrategy; the task was given as many GPUs, as in local mode."""
    gpus = ",".join(f"GPU-{number}" for number in range(count))
    line = f"mpirun -np {count} {TRAIN} -n mirrored-{count}.nc {' '.join(LEARN)}"
    process = start(home, *line.split(), CPU_DEVICES=str(count), NVIDIA_VISIBLE_DEVICES=gpus)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert f"on {', '.join(f'/cpu:{n}' for n in range(count))}: " in out
    predict(program, home, f"mirrored-{count}.nc", f"recs-mirrored-{count}", "-k", str(K))
    texts = [(home / name).read_text() for name in (f"recs-mirrored-{count}", "data", "held-out")]
    found, popular = program.ratings.recall(*texts, K)
    assert found >= popular + MARGIN


def test_a_last_batch_too_small_for_every_device_is_learnt_from_too(program: Any, tmp_path: Path) -> None:
    """101 samples in batches of 50 leave one sample for two devices: the other device has none for its mean."""
    verb(program, tmp_path, "generateRatings -o data -t held-out -s 101 -f 80 -c 2")
    for what in ("input", "output"):
        verb(program, tmp_path, f"generateNetCDF -d gl_{what} -i data -o gl_{what}.nc -f f_{what} -s samples -c")
    line = f"mpirun -np 2 {TRAIN} -n remainder.nc -b 51 -e 2"
    process = start(tmp_path, *line.split(), CPU_DEVICES="2", NVIDIA_VISIBLE_DEVICES="GPU-0,GPU-1")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert "batches of 50 samples in place of 51, as many for each of 2 devices" in out
    assert len(re.findall(r"^epoch \d: Average_Error \d+\.\d+$", out, re.MULTILINE)) == 2


def test_fewer_samples_than_devices_exit_64(program: Any, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a\tone,1\n")
    for what in ("input", "output"):
        verb(program, tmp_path, f"generateNetCDF -d gl_{what} -i data -o gl_{what}.nc -f f_{what} -s samples -c")
    process = start(tmp_path, *f"mpirun -np 2 {TRAIN} -n x.nc -b 4 -e 1".split(), CPU_DEVICES="2")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "too few samples (1) for 2 devices" in err) == (64, True), err


def test_gpus_that_the_cpu_flavour_cannot_use_exit_64(home: Path) -> None:
    process = start(home, *f"{TRAIN} -n never.nc".split(), NVIDIA_VISIBLE_DEVICES="GPU-a")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 64
    assert "this image is the CPU flavour" in err
    assert not (home / "never.nc").exists()


def test_a_batch_smaller_than_the_devices_exits_64(home: Path) -> None:
    process = start(home, *f"{TRAIN} -n never.nc -b 1".split(), CPU_DEVICES="2")
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 64
    assert "-b 1: a batch needs at least one sample for each of 2 devices" in err


def test_sigterm_ends_a_training_with_nothing_written(home: Path) -> None:
    process = start(home, *f"{TRAIN} -n stopped.nc -e 100000".split())
    assert process.stdout is not None
    assert process.stdout.readline().startswith("epoch 1: Average_Error")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 143
    assert "stopped by SIGTERM" in err
    assert not list(home.glob("*stopped*")) + list(home.glob(".unfinished*"))


def test_the_chain_of_the_template_ends_with_its_results_in_s3_once(home: Path) -> None:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        url = "http://{}:{}".format(*server.get_host_and_port())
        s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
        s3.create_bucket(Bucket="results")
        environment = {
            "AWS_ENDPOINT_URL": url,
            "DATAURL": str(home / "data"),
            "TRAININGCONFIGURL": str(MOVIELENS),
            "TRAINCMD": "train -c config -i gl_input.nc -o gl_output.nc -n gl.nc -b 256 -e 1",
            "RESULTSURL": "s3://results/run/parts/part-0000000.recs",
            "ARGOSY_TASK_ATTEMPT": "2",
            "SCRATCH": str(home),
        }
        for said in ("results written to", "results were already at"):
            process = start(home, **environment)
            out, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0, err
            assert said in out
        assert re.findall(r"^running (\w+) ", out, re.M) == ["generateNetCDF", "generateNetCDF", "train", "predict"]
        stored = s3.get_object(Bucket="results", Key="run/parts/part-0000000.recs")
        rows = stored["Body"].read().decode().splitlines()
        assert len(rows) == 1000
        assert all(row.count(":") == 10 for row in rows)
        assert stored["Metadata"] == {"argosy-attempt": "2"}
        assert not list(home.glob("recommender-*"))
    finally:
        server.stop()


def test_the_readmes_lines_can_be_typed_and_both_runs_recommend(tmp_path: Path) -> None:
    """Its numbers too: recall@10 of the first block, on the ratings that it generates."""
    from tests.readmes import Shell, command_lines, local_options

    with local_aws(local_options()) as aws:
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        told = {"PATH": path, "ARGOSY_ENDPOINT_URL": aws.endpoint_url, "AWS_ENDPOINT_URL": aws.endpoint_url}
        shell = Shell(tmp_path, told)
        shell.type("cd containers/recommender")
        said = {}
        for line in command_lines("recommender"):
            more = " --set 'container.environment.CPU_DEVICES=\"4\"'" if "4-gpu" in line else ""
            said[line] = shell.type(line + more)
    (figures,) = [text for line, text in said.items() if " recall " in line]
    found, popular = re.fullmatch(r"recall@10 ([0-9.]+), of popularity ([0-9.]+)\n", figures).groups()
    assert float(found) >= float(popular) + MARGIN
    assert all("SUCCEEDED" in text for line, text in said.items() if " submit " in line)
    (recs,) = (shell.folder / "recommended").rglob("*.recs")
    assert len(recs.read_text().splitlines()) == 1000
