"""The recommender's reading side: configs, text data, command lines, bad input. Tests that need TensorFlow are in
tests/containers."""

from __future__ import annotations

import importlib
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from tests.fakes.commands import outcome_of

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).resolve().parents[3] / "containers" / "recommender"
EXAMPLES = sorted((FOLDER / "examples").glob("*.json"))
DATA = "u1\ta,5:b,1474848000:c\nu2\tb,2.5:d\n"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The modules of the program that do without TensorFlow."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = ("devices", "faults", "flags", "network_config", "pipeline", "predicting", "ratings", "text_data", "verbs")
    yield SimpleNamespace(**{name: module(name) for name in names})
    for name in [each for each in sys.modules if each.partition(".")[0] == "recommender"]:
        del sys.modules[name]


def module(name: str) -> ModuleType:
    # `predicting` and `network` import TensorFlow and Keras when they are used, not before.
    return importlib.import_module(f"recommender.{name}")


def words(line: str) -> list[str]:
    return line.split()


def run(*arguments: str, cwd: Path = FOLDER, **environment: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of the program, which has no TensorFlow here."""
    process = outcome_of(["program", "recommender", *arguments], cwd, PYTHONPATH=str(FOLDER), **environment)
    return process.returncode, process.stdout, process.stderr


# --- configs ----------------------------------------------------------------------------------------------------------


def test_the_three_sample_configs_of_dsstne_parse(program: Any) -> None:
    networks = {path.stem: program.network_config.parse(path.read_text()) for path in EXAMPLES}
    assert {name: [layer.size for layer in found.layers] for name, found in networks.items()} == {
        "benchmark": [1024, 1024, 1024, 0],
        "movielens": [128, 0],
        "two-hidden": [1024, 1024, 0],
    }
    sample, benchmark = networks["movielens"], networks["benchmark"]
    assert (sample.penalty, sample.denoising, sample.shuffle) == ((0.5, 2.0), 0.2, False)
    assert [layer.sparse for layer in sample.layers] == [True, True]
    assert (benchmark.penalty, benchmark.denoising) == (None, 0.0)
    assert [(layer.dropout, layer.scheme, layer.scale) for layer in benchmark.layers[:3]] == [
        (0.5, "Gaussian", 0.01)
    ] * 3
    assert (benchmark.layers[3].bias, benchmark.layers[3].activation) == (-10.2, "sigmoid")
    assert [layer.activation for layer in networks["two-hidden"].layers] == ["relu", "relu", "sigmoid"]


def changed(change: Any) -> str:
    document = json.loads((FOLDER / "examples/movielens.json").read_text())
    change(document)
    return json.dumps(document)


def test_keys_and_names_are_read_without_regard_to_case_as_dsstne_does(program: Any) -> None:
    document = json.loads((FOLDER / "examples/movielens.json").read_text())
    lower = json.loads(json.dumps(document).lower())
    network = program.network_config.parse(json.dumps(lower))
    assert [layer.size for layer in network.layers] == [128, 0]


def test_plain_cross_entropy_has_no_margins(program: Any) -> None:
    def change(document: Any) -> None:
        document["ErrorFunction"] = "CrossEntropy"
        document["ScaledMarginalCrossEntropy"] = {"oneTarget": 0.9, "oneScale": 5}

    network = program.network_config.parse(changed(change))
    assert (network.one_target, network.one_scale) == (1.0, 1.0)
    change_back = {"ErrorFunction": "ScaledMarginalCrossEntropy", "ScaledMarginalCrossEntropy": {"oneTarget": 0.9}}
    assert program.network_config.parse(changed(lambda d: d.update(change_back))).one_target == 0.9


def test_every_wrong_key_is_named_at_once(program: Any) -> None:
    def change(document: Any) -> None:
        document["Optimizer"] = "SGD"
        document["Denoising"]["q"] = 1
        document["Kind"] = "Recurrent"
        document["ShuffleIndices"] = "no"
        document["SparsenessPenalty"]["p"] = 2
        document["Layers"][0]["Activation"] = "Sigmoid"
        document["Layers"][1].update(
            pDropput=0.5, Type="Convolutional", Source="Elsewhere", WeightInit={"Scheme": "UnitBall"}
        )
        document["Layers"][2].update(Activation="SoftMax", N="many")
        del document["Layers"][2]["DataSet"]

    with pytest.raises(program.faults.BadInput) as caught:
        program.network_config.parse(changed(change))
    assert sorted(caught.value.faults) == sorted(
        [
            "config: Optimizer: is not a key that is supported here; there is Version, Name, Kind, SparsenessPenalty,"
            " ShuffleIndices, Denoising, ScaledMarginalCrossEntropy, Layers, ErrorFunction",
            "config: Denoising.q: is not a key that is supported here; there is p",
            "config: Kind: 'Recurrent' is not among FeedForward",
            "config: ShuffleIndices: must be true or false",
            "config: SparsenessPenalty.p: must be a number from 0.001 to 0.999",
            "config: Layers[0].Activation: is not a key that is supported here; there is Name, Kind, N, DataSet,"
            " Sparse",
            "config: Layers[1].pDropput: is not a key that is supported here; did you mean pDropout?",
            "config: Layers[1].Type: 'Convolutional' is not among FullyConnected",
            "config: Layers[1].Source: only the layer before, Input, can be the source here, not 'Elsewhere'",
            "config: Layers[1].WeightInit.Scheme: 'UnitBall' is not among Xavier, Gaussian, Uniform, Constant",
            "config: Layers[2].Activation: 'SoftMax' is not among Sigmoid (of an Output layer)",
            'config: Layers[2].N: must be a whole number from 1 on or "auto"',
            "config: Layers[2].DataSet: must name a data set",
        ]
    )


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is not JSON"),
        ("[]", "the config: must be an object"),
        ("{}", "Layers: must be a list"),
        ('{"Layers": [1, 2, 3]}', r"Layers\[0\]: must be an object"),
        (changed(lambda d: d["Layers"][1].update(Kind="Output")), "Output is in the place of a Hidden layer"),
        (changed(lambda d: d["Layers"][2].update(Kind="Hidden")), "Hidden is in the place of an Output layer"),
        (changed(lambda d: d["Layers"][1].update(N="auto")), r"Layers\[1\].N: must be a whole number from 1 on$"),
        (changed(lambda d: d["Layers"][1].update(N=True)), r"Layers\[1\].N"),
        (changed(lambda d: d["Layers"][1].update(pDropout=-1)), "pDropout: must be a number from 0 to 0.99"),
        (changed(lambda d: d["Layers"][1].update(WeightInit={"Scale": -1})), "Scale: must be a number of 0 or more"),
        (changed(lambda d: d["Layers"][1].update(WeightInit={"Bias": "low"})), "Bias: must be a number$"),
    ],
)
def test_a_config_that_describes_no_network_is_refused(program: Any, text: str, complaint: str) -> None:
    with pytest.raises(program.faults.BadInput, match=complaint):
        program.network_config.parse(text)


# --- data -------------------------------------------------------------------------------------------------------------


def test_the_text_format_becomes_a_data_set_and_two_indexes(program: Any) -> None:
    features: dict[str, int] = {}
    samples: dict[str, int] = {}
    data = program.text_data.read_data(DATA, "t", "gl", features, samples, grow=True)
    assert (features, samples) == ({"a": 0, "b": 1, "c": 2, "d": 3}, {"u1": 0, "u2": 1})
    assert (data.starts.tolist(), data.features.tolist(), data.width) == ([0, 3, 5], [0, 1, 2, 1, 3], 4)
    again = program.text_data.from_bytes(program.text_data.to_bytes(data), "x")
    assert (again.name, again.starts.tolist(), again.features.tolist(), again.width) == (
        "gl",
        data.starts.tolist(),
        data.features.tolist(),
        4,
    )


def test_without_growth_unknown_features_are_left_out_and_the_last_of_equal_samples_counts(program: Any) -> None:
    data = program.text_data.read_data("u\ta:x\n\nv\tx\nu\tb:a:b\n", "t", "gl", {"a": 0, "b": 1}, {}, grow=False)
    assert (data.starts.tolist(), data.features.tolist(), data.width) == ([0, 2, 2], [0, 1], 2)


@pytest.mark.parametrize(
    ("text", "complaints"),
    [
        ("", ["holds no sample"]),
        (
            "u a:b\n\tx\nv\ta,many\n",
            ["line 1: no sample and TAB", "line 2: no sample", "line 3: the value of 'a,many'"],
        ),
    ],
)
def test_lines_that_are_none_are_named(program: Any, text: str, complaints: list[str]) -> None:
    with pytest.raises(program.faults.BadInput) as caught:
        program.text_data.read_data(text, "t", "gl", {}, {}, grow=True)
    assert len(caught.value.faults) == len(complaints)
    assert all(complaint in fault for complaint, fault in zip(complaints, caught.value.faults, strict=True))


@pytest.mark.parametrize("stored", [b"", b"CDF\x01 NetCDF", b"PK\x03\x04"])
def test_what_is_no_data_set_is_refused(program: Any, stored: bytes) -> None:
    with pytest.raises(program.faults.BadInput, match="x is no data set of generateNetCDF"):
        program.text_data.from_bytes(stored, "x")


def test_a_data_set_whose_parts_do_not_fit_is_refused(program: Any) -> None:
    import numpy as np

    data = program.text_data.DataSet("gl", np.array([0, 2]), np.array([0, 7], np.int32), 3)
    with pytest.raises(program.faults.BadInput, match="do not fit"):
        program.text_data.from_bytes(program.text_data.to_bytes(data), "x")


def test_an_index_is_read_back_in_any_order_and_refused_when_it_is_none(program: Any) -> None:
    assert program.text_data.read_index("b\t1\na\t0\n", "x") == {"b": 1, "a": 0}
    assert program.text_data.labels_of({"b": 1, "a": 0}) == ["a", "b"]
    for broken in ("a\t1\n", "a\t0\nb\t0\n", "a\n", "a\tzero\n"):
        with pytest.raises(program.faults.BadInput, match="is no index"):
            program.text_data.read_index(broken, "x")


def test_generate_netcdf_gives_input_and_output_one_order_of_samples(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "later").write_text("u2\te\nu3\ta\n")
    first = ["generateNetCDF", "-d", "gl", "-i", "data", "-o", "a.nc", "-f", "features", "-s", "samples", "-c"]
    assert run(*first, cwd=tmp_path) == (0, "a.nc: 2 samples, 4 features, 5 of them set\n", "")
    frozen = ["generateNetCDF", "-d", "gl", "-i", "later", "-o", "b.nc", "-f", "features", "-s", "samples"]
    assert run(*frozen, cwd=tmp_path)[1] == "b.nc: 3 samples, 4 features, 1 of them set\n"
    assert (tmp_path / "features").read_text() == "a\t0\nb\t1\nc\t2\nd\t3\n"
    assert (tmp_path / "samples").read_text() == "u1\t0\nu2\t1\nu3\t2\n"
    assert run(*frozen, "-m", cwd=tmp_path)[1] == "b.nc: 3 samples, 5 features, 2 of them set\n"
    assert (tmp_path / "features").read_text().endswith("e\t4\n")


# --- command lines ----------------------------------------------------------------------------------------------------


def test_the_documented_command_lines_of_dsstne_are_understood(program: Any) -> None:
    train = (
        "train -d gl -c config.json -i gl_input.nc -o gl_output.nc -n gl.nc -b 256 -e 10 -alpha 0.025f -lambda 0.0001f"
    )
    given = program.flags.read_flags("train", train.split()[1:])
    assert (given.c, given.i, given.o, given.n, given.b, given.e, given.alpha) == (
        "config.json", "gl_input.nc", "gl_output.nc", "gl.nc", 256, 10, 0.025,
    )  # fmt: skip
    predict = (
        "predict -b 1024 -d gl -i features_input -o features_output -k 10 -n gl.nc -f ml20m-all -s recs -r ml20m-all"
    )
    given = program.flags.read_flags("predict", predict.split()[1:])
    assert (given.b, given.k, given.l, given.p, given.s, given.f) == (1024, 10, "Output", "4.3f", "recs", "ml20m-all")
    assert program.verbs.without_mpirun(f"mpirun -np 4 {train}".split()) == (4, train.split())


def test_defaults_are_those_of_dsstne(program: Any) -> None:
    train = program.flags.read_flags("train", words("-c a -i b -o c -n d"))
    predict = program.flags.read_flags("predict", words("-d a -n b -r c -i d -o e -f f -s g"))
    assert (train.b, train.e, predict.b, predict.k) == (1024, 40, 1024, 100)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["learn"], "'learn' is not a verb; there is generateNetCDF, train, predict"),
        (["train", "-c", "x"], "the following arguments are required: -i, -o, -n"),
        (["train", "-c", "x", "-i", "a", "-o", "b", "-n", "n", "-b", "0"], "'0' is not a whole number from 1 on"),
        (["train", "-c", "x", "-i", "a", "-o", "b", "-n", "n", "-alpha", "fast"], "'fast' is not a number"),
        (["train", "-c", "x", "-i", "a", "-o", "b", "-n", "n", "-gpus", "2"], "unrecognized arguments: -gpus 2"),
        (["generateNetCDF", "-d", "x", "-i", "a", "-o", "b", "-f", "f", "-s", "s", "-t", "analog"], "invalid choice"),
        (["mpirun", "-np", "4"], "only `mpirun -np NUMBER VERB ...` is understood"),
        (["mpirun", "-np", "2", "recall", "-s", "a", "-r", "b", "-t", "c"], "mpirun is for train"),
        (["generateRatings", "-o", "a", "-t", "b", "-f", "100", "-c", "9"], "a cluster needs 40 features"),
        (["predict", *words("-d a -n b -r c -i d -o e -f f -s g -p wide")], "'wide' is no precision"),
        (["train", *words("-c none.json -i a -o b -n n")], "none.json"),
        (["recall", *words("-s none -r none -t none")], "none"),
    ],
)
def test_a_bad_command_line_exits_64(tmp_path: Path, arguments: list[str], complaint: str) -> None:
    code, out, err = run(*arguments, cwd=tmp_path)
    assert (code, out) == (64, "")
    assert complaint in err
    assert "Traceback" not in err


def test_cheap_checks_come_before_tensorflow(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "c.json").write_text((FOLDER / "examples/movielens.json").read_text())
    (tmp_path / "bad.json").write_text(changed(lambda d: d.update(Speed=3)))
    make = ["generateNetCDF", "-d", "gl", "-i", "data", "-o", "a.nc", "-f", "features", "-s", "samples", "-c"]
    assert run(*make, cwd=tmp_path)[0] == 0
    (tmp_path / "b.nc").write_bytes(b"no data")
    (tmp_path / "gl.nc").write_bytes(b"of yesterday")
    for arguments, complaint in (
        ("-c bad.json -i a.nc -o a.nc -n n", "config: Speed: is not a key"),
        ("-c c.json -i a.nc -o b.nc -n n", "b.nc is no data set"),
        ("-c c.json -i a.nc -o a.nc -n gl.nc", "the network file gl.nc is there already"),
    ):
        code, _, err = run("train", *arguments.split(), cwd=tmp_path)
        assert (code, complaint in err, "Traceback" in err) == (64, True, False), err
    assert (tmp_path / "gl.nc").read_bytes() == b"of yesterday"


# --- devices ----------------------------------------------------------------------------------------------------------


class FakeConfig:
    """tf.config of a machine with `gpus` of them."""

    def __init__(self, gpus: int) -> None:
        self.gpus = gpus
        self.hidden = False
        self.LogicalDeviceConfiguration = object
        self.logical: list[object] | None = None

    def list_physical_devices(self, kind: str) -> list[str]:
        return ["cpu"] if kind == "CPU" else ["gpu"] * self.gpus

    def set_visible_devices(self, devices: list[str], kind: str) -> None:
        self.hidden = not devices

    def get_logical_device_configuration(self, device: str) -> list[object] | None:
        return self.logical

    def set_logical_device_configuration(self, device: str, made: list[object]) -> None:
        self.logical = made


def fake_tf(gpus: int, *, cuda: bool) -> Any:
    return SimpleNamespace(config=FakeConfig(gpus), test=SimpleNamespace(is_built_with_cuda=lambda: cuda))


def test_the_gpus_that_were_given_are_used_up_to_four(program: Any) -> None:
    find = program.devices.find
    four = ["a", "b", "c", "d"]
    assert find(fake_tf(4, cuda=True), four, None, 0) == ["/gpu:0", "/gpu:1", "/gpu:2", "/gpu:3"]
    assert find(fake_tf(8, cuda=True), [], 2, 0) == ["/gpu:0", "/gpu:1"]
    assert find(fake_tf(0, cuda=False), [], None, 0) == ["/cpu:0"]
    assert find(fake_tf(0, cuda=False), four, 4, 2) == ["/cpu:0", "/cpu:1"]
    with pytest.raises(program.faults.WrongImage, match="5 GPUs are more than the 4"):
        find(fake_tf(8, cuda=True), [*four, "e"], None, 0)


def test_missing_gpus_differ_from_an_image_that_cannot_use_them(program: Any) -> None:
    find = program.devices.find
    with pytest.raises(program.faults.NoDevice, match=r"2 GPUs wanted .*TensorFlow sees 1"):
        find(fake_tf(1, cuda=True), ["a", "b"], None, 0)
    with pytest.raises(program.faults.WrongImage, match="CPU flavour"):
        find(fake_tf(0, cuda=False), ["a"], None, 0)
    with pytest.raises(program.faults.WrongImage, match="asks for 4 GPUs, but the task was given 1"):
        find(fake_tf(1, cuda=True), ["a"], 4, 0)


@pytest.mark.parametrize("named", ["", "none", "void", "all"])
def test_names_for_no_particular_gpu_pin_none(program: Any, named: str) -> None:
    assert program.verbs.gpus_of({"NVIDIA_VISIBLE_DEVICES": named}) == ()
    assert program.verbs.gpus_of({"NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"}) == ("GPU-a", "GPU-b")


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    boto3.client("s3", endpoint_url=url, region_name="us-east-1").create_bucket(Bucket="results")
    yield url
    server.stop()


def objects(endpoint: str) -> list[str]:
    s3 = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    return [found["Key"] for found in s3.list_objects_v2(Bucket="results").get("Contents", ())]


class Answers(BaseHTTPRequestHandler):
    """GET /STATUS/text answers with the status; 200 with ratings."""

    def do_GET(self) -> None:
        status = int(self.path.split("/")[1])
        body = {200: DATA.encode(), 299: b"\xff"}.get(status, b"")
        self.send_response(200 if status == 299 else status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silent."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join(timeout=60)
    server.server_close()


CHAIN = {"TRAININGCONFIGURL": "examples/movielens.json", "RESULTSURL": "s3://results/run/part.recs"}


@pytest.mark.parametrize(
    ("changes", "code", "complaint"),
    [
        ({"DATAURL": "{web}/404/data"}, 64, "DATAURL: {web}/404/data: HTTP 404"),
        ({"DATAURL": "{web}/299/data"}, 64, "is no text"),
        ({"DATAURL": "{web}/503/data"}, 75, "HTTP 503"),
        ({"DATAURL": "http://127.0.0.1:9/data"}, 75, "refused"),
        ({"DATAURL": "http://[/data"}, 64, "http://[/data"),
        ({"DATAURL": "s3://results/none"}, 64, "DATAURL: s3://results/none: NoSuchKey"),
        ({"DATAURL": "s3://nowhere/none"}, 64, "NoSuchBucket"),
        ({"TRAININGCONFIGURL": "no.json"}, 64, "TRAININGCONFIGURL: "),
        ({"TRAINCMD": "train -e many"}, 64, "TRAINCMD: train: "),
        ({"TRAINCMD": "curl example | sh"}, 64, "TRAINCMD: 'curl' is not a verb"),
        ({"TRAINCMD": "train 'x"}, 64, "TRAINCMD: No closing quotation"),
        ({"GENERATEINPUTCMD": "generateNetCDF -d x -i none -o b -f f -s s -c"}, 64, "GENERATEINPUTCMD: none"),
        ({"DATAURL": "", "TRAININGCONFIGURL": ""}, 64, "neither a verb nor DATAURL and TRAININGCONFIGURL was given"),
        ({"RESULTSURL": ""}, 64, "no place for the results"),
        ({"SCRATCH": "/dev/null"}, 64, "SCRATCH"),
    ],
)
def test_a_chain_that_cannot_work_names_its_step_and_leaves_nothing(
    endpoint: str, web: str, changes: dict[str, str], code: int, complaint: str
) -> None:
    environment = {"DATAURL": f"{web}/200/data", **CHAIN, **{k: v.replace("{web}", web) for k, v in changes.items()}}
    before = objects(endpoint)  # moto keeps the objects of other modules' servers in this process
    found, _, err = run(AWS_ENDPOINT_URL=endpoint, **environment)
    assert found == code, err
    assert complaint.replace("{web}", web) in err
    assert "Traceback" not in err
    assert objects(endpoint) == before


def test_by_default_the_chain_runs_the_templates_commands(program: Any) -> None:
    definition = json.loads((FOLDER / "task-definitions.json").read_text())["recommender"]
    own = {name: definition["environment"][name] for name in program.pipeline.COMMANDS}
    assert own.pop("TRAINCMD") == f"mpirun -np 4 {program.pipeline.COMMANDS['TRAINCMD']}"
    assert own == {name: program.pipeline.COMMANDS[name] for name in own}
    assert definition["gpus"] == 4


def test_results_go_to_the_part_else_to_the_templates_bucket(program: Any) -> None:
    target = program.pipeline.results_address
    assert target({"RESULTSURL": "s3://b/k", "ARGOSY_PART_URI": "s3://b/p"}) == "s3://b/k"
    assert target({"ARGOSY_PART_URI": "s3://b/p", "S3BUCKETRESULTS": "old"}) == "s3://b/p"
    assert target({"S3BUCKETRESULTS": "old", "HOSTNAME": "h"}) == "s3://old/results.h"


# --- recall -----------------------------------------------------------------------------------------------------------


def test_recall_is_a_share_of_what_was_held_out(program: Any) -> None:
    recommended = "u\ta,0.9:b,0.8:c,0.7:\nv\tx,0.9:y,0.8:\n"
    data = "u\tp\nv\tq\nw\ta:x\nz\ta:y\n"
    assert program.ratings.recall(recommended, data, "u\tb:z\nv\tx\n", 2) == (0.75, 0.0)
    assert program.ratings.recall(recommended, data, "u\ta\n", 1) == (1.0, 1.0)
    with pytest.raises(program.faults.BadInput, match="for every sample"):
        program.ratings.recall(recommended, data, "nobody\ta\n", 2)


def test_generated_ratings_are_the_same_each_time_and_hold_out_a_fifth(program: Any) -> None:
    kept, held = program.ratings.generate(50, 120, 3)
    assert (kept, held) == program.ratings.generate(50, 120, 3)
    seen = dict(program.text_data.records(kept, "kept"))
    hidden = dict(program.text_data.records(held, "held"))
    assert len(seen) == len(hidden) == 50
    assert all(not set(seen[user]) & set(hidden[user]) for user in seen)
    share = sum(map(len, hidden.values())) / sum(len(seen[u]) + len(hidden[u]) for u in seen)
    assert 0.18 < share < 0.24


@pytest.mark.parametrize(("name", "tasks"), [("run.yaml", 1), ("run-4-gpu.yaml", 1)])
def test_the_run_specs_next_to_the_program_are_valid(name: str, tasks: int) -> None:
    from argosy.spec import parse as spec
    from argosy.spec import shards
    from argosy.spec.file import check_text

    form = spec.to_json(check_text((FOLDER / name).read_text())[0])
    assert shards.task_count(form) == tasks
    assert shards.expects_result(form)
    assert form["array"]["partSuffix"] == ".recs"
