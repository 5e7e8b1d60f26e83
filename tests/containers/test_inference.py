"""The inference image's program with TensorFlow: a real model, real images, an S3, a stop and a retry."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.containers import s3
from tests.fakes.local_mode import local_aws
from tests.readmes import Shell, command_lines, local_options

pytestmark = pytest.mark.tf

IMAGE, FOLDER = "tensorflow-inference", s3.CONTAINERS / "tensorflow-inference"
COUNT = 1797


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the README's first command: images/, truth.json and model/."""
    folder: Path = tmp_path_factory.mktemp("digits")
    subprocess.run(
        [sys.executable, "examples/digits.py", str(folder)],
        cwd=FOLDER,
        check=True,
        capture_output=True,
        timeout=s3.PATIENCE_S,
    )
    return folder


def inference(*arguments: str, **environment: str) -> s3.Ended:
    return s3.run(IMAGE, "inference", *arguments, **environment)


def test_a_range_of_a_folder_is_classified_rightly_with_the_best_five_labels(digits: Path, tmp_path: Path) -> None:
    part = tmp_path / "part.jsonl"
    ended = inference("900:1797", str(part), "--images", str(digits / "images"), "--model", str(digits / "model"))
    assert ended.code == 0, ended.err
    found, truth = s3.rows(part.read_text()), json.loads((digits / "truth.json").read_text())
    assert [row["index"] for row in found] == list(range(900, COUNT))
    assert found[0]["image"].endswith("0900.png")
    assert all(len(row["top"]) == 5 for row in found)
    assert all(row["top"][k]["score"] >= row["top"][k + 1]["score"] for row in found for k in range(4))
    assert sum(row["top"][0]["label"] == str(truth[row["index"]]) for row in found) / len(found) >= 0.85
    assert "897, 0 of them errors" in ended.out


def test_a_task_on_s3_writes_one_part_with_what_it_measured_and_never_over_another(
    digits: Path, bucket: s3.Bucket
) -> None:
    for number in range(40):
        bucket.put(f"images/{number:04d}.png", (digits / "images" / f"{number:04d}.png").read_bytes())
    task = {
        "AWS_ENDPOINT_URL": bucket.endpoint,
        "ARGOSY_RANGE": "10:30",
        "ARGOSY_PART_URI": f"s3://{s3.BUCKET}/run/parts/part-0000000.jsonl",
        "ARGOSY_OUTPUT_URI": f"s3://{s3.BUCKET}/run/attempts/0/1/",
        "ARGOSY_TASK_ATTEMPT": "1",
        "INFERENCE_IMAGES": f"s3://{s3.BUCKET}/images/",
        "INFERENCE_MODEL": bucket.put_folder("model/", digits / "model"),
        "INFERENCE_TOP": "1",
    }
    ended = inference(**task)
    assert ended.code == 0, ended.err
    key = "run/parts/part-0000000.jsonl"
    assert [row["index"] for row in bucket.rows(key)] == list(range(10, 30))
    facts = bucket.metadata(key)
    assert {facts["argosy-attempt"], facts["argosy-images"], facts["argosy-errors"]} == {"1", "20", "0"}
    assert float(facts["argosy-images-per-second"]) > 0
    again = inference(**{**task, "ARGOSY_TASK_ATTEMPT": "2"})
    assert (again.code, "already there" in again.out) == (0, True)
    assert bucket.metadata(key)["argosy-attempt"] == "1"
    assert bucket.keys("run/") == ["run/attempts/0/1/benchmark.json", key]


def test_a_stopped_task_is_taken_up_by_its_retry_and_no_image_is_done_twice(digits: Path, bucket: s3.Bucket) -> None:
    def task(attempt: int, **more: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": bucket.endpoint,
            "ARGOSY_PART_URI": f"s3://{s3.BUCKET}/stop/parts/part-0000004.jsonl",
            "ARGOSY_OUTPUT_URI": f"s3://{s3.BUCKET}/stop/attempts/4/{attempt}/",
            "ARGOSY_TASK_ATTEMPT": str(attempt),
            "INFERENCE_IMAGES": str(digits / "images"),
            "INFERENCE_MODEL": str(digits / "model"),
            "INFERENCE_BATCH_SIZE": "10",
            **more,
        }

    process = s3.start(IMAGE, "inference", "100:300", **task(1, INFERENCE_SECONDS_PER_IMAGE="0.1"))
    assert process.stdout is not None
    line = next(line for line in process.stdout if line.startswith("classified "))
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 143, said
    kept = bucket.rows("stop/attempts/4/checkpoints/1/checkpoint.jsonl")[1:]
    assert 0 < len(kept) < 200
    assert len(kept) % 10 == 0  # whole batches
    assert len(kept) >= int(line.split()[1])
    assert f"stopped by SIGTERM after {len(kept)} of 200 images; checkpoint s3://" in said
    assert not bucket.keys("stop/parts/")

    ended = inference("100:300", **task(2))
    assert ended.code == 0, ended.err
    assert f"continues after {len(kept)} of 200 images" in ended.out
    found = bucket.rows("stop/parts/part-0000004.jsonl")
    assert [row["index"] for row in found] == list(range(100, 300))
    assert found[: len(kept)] == kept
    facts = bucket.metadata("stop/parts/part-0000004.jsonl")
    assert (facts["argosy-attempt"], facts["argosy-resumed"]) == ("2", str(len(kept)))
    assert float(facts["argosy-seconds"]) * float(facts["argosy-images-per-second"]) == pytest.approx(
        200 - len(kept), rel=0.1
    )


def test_a_task_whose_host_dies_without_a_warning_resumes_from_its_last_kept_rows(
    digits: Path, bucket: s3.Bucket
) -> None:
    def task(attempt: int, **more: str) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": bucket.endpoint,
            "ARGOSY_PART_URI": f"s3://{s3.BUCKET}/dies/parts/part-0000000.jsonl",
            "ARGOSY_OUTPUT_URI": f"s3://{s3.BUCKET}/dies/attempts/0/{attempt}/",
            "ARGOSY_TASK_ATTEMPT": str(attempt),
            "INFERENCE_IMAGES": str(digits / "images"),
            "INFERENCE_MODEL": str(digits / "model"),
            "INFERENCE_BATCH_SIZE": "10",
            **more,
        }

    slow = {"INFERENCE_SECONDS_PER_IMAGE": "0.05", "INFERENCE_CHECKPOINT_SECONDS": "0.2"}
    process = s3.start(IMAGE, "inference", "100:300", **task(1, **slow))
    assert process.stdout is not None
    next(line for line in process.stdout if line.startswith("kept the first "))
    process.kill()
    process.communicate(timeout=60)
    kept = bucket.rows("dies/attempts/0/checkpoints/1/checkpoint.jsonl")[1:]
    assert 0 < len(kept) < 200
    assert len(kept) % 10 == 0  # whole batches

    ended = inference("100:300", **task(2))
    assert ended.code == 0, ended.err
    assert f"continues after {len(kept)} of 200 images" in ended.out
    found = bucket.rows("dies/parts/part-0000000.jsonl")
    assert [row["index"] for row in found] == list(range(100, 300))
    assert found[: len(kept)] == kept
    facts = bucket.metadata("dies/parts/part-0000000.jsonl")
    assert (facts["argosy-rows"], facts["argosy-resumed"]) == ("200", str(len(kept)))


def test_dead_addresses_and_broken_images_are_rows_and_the_others_are_classified(
    digits: Path, bucket: s3.Bucket, tmp_path: Path
) -> None:
    good = (digits / "images" / "0003.png").read_bytes()
    (tmp_path / "good.png").write_bytes(good)
    listed = [
        "first\tADDRESS/good.png",
        "ADDRESS/gone.png",
        bucket.put("broken.png", good[:40]),
        bucket.put("text.jpg", b"no image at all"),
        f"s3://{s3.BUCKET}/none.png",
        bucket.put("good.png", good),
        "ftp://127.0.0.1/x.png",
        "http://127.0.0.1:9/away.png",  # no server listens there, and the others answer
    ]
    with web(tmp_path) as address:
        urls = bucket.put("urls.txt", "\n".join(listed).replace("ADDRESS", address).encode())
        ended = inference(
            *("0:8", str(tmp_path / "part"), "--urls", urls, "--model", str(digits / "model")),
            AWS_ENDPOINT_URL=bucket.endpoint,
        )
    assert ended.code == 0, ended.err
    found = s3.rows((tmp_path / "part").read_text())
    assert [row["index"] for row in found] == list(range(8))
    assert (found[0]["name"], found[0]["top"][0]["label"], found[5]["top"][0]["label"]) == ("first", "3", "3")
    errors = {row["index"]: row["error"] for row in found if "error" in row}
    assert list(errors) == [1, 2, 3, 4, 6, 7]
    for index, part in (
        (1, "HTTP 404"),
        (2, "not an image"),
        (3, "not an image"),
        (4, "NoSuchKey"),
        (6, "not an http"),
        (7, "refused"),
    ):
        assert part in errors[index]
    assert "8, 6 of them errors" in ended.out


def web(folder: Path) -> Any:
    """A web server over the folder; its address."""
    from contextlib import contextmanager

    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, format: str, *args: Any) -> None:
            """Silent."""

    @contextmanager
    def serving() -> Iterator[str]:
        with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield f"http://127.0.0.1:{server.server_port}"
            server.shutdown()
            thread.join(10)

    return serving()


def test_a_pinned_gpu_in_the_cpu_flavour_exits_64_and_writes_nothing(digits: Path, tmp_path: Path) -> None:
    arguments = ("0:3", str(tmp_path / "part"), "--images", str(digits / "images"), "--model", str(digits / "model"))
    ended = inference(*arguments, NVIDIA_VISIBLE_DEVICES="GPU-a")
    assert ended.code == 64
    assert "1 GPU is pinned to this task, but this image is the CPU flavour" in ended.err
    assert not (tmp_path / "part").exists()


@pytest.mark.filterwarnings("default")
class TestModels:
    """Models that cannot be used, each refused in one sentence; TensorFlow is loaded once for all of them."""

    def refusal(self, folder: Path, **more: Any) -> str:
        import tensorflow as tf
        from inference.model import Classifier, UnusableModel

        with pytest.raises(UnusableModel) as refused:
            Classifier(tf, folder, "s3://b/m/", more.get("image_size", 0))
        return str(refused.value)

    def saved(self, folder: Path, shape: list[int | None], classes: int = 3, **more: Any) -> Path:
        import tensorflow as tf

        class Net(tf.Module):  # type: ignore[misc]
            @tf.function(input_signature=[tf.TensorSpec(shape, more.get("dtype", tf.float32), name="images")])  # type: ignore[untyped-decorator]
            def call(self, images: Any) -> Any:
                scores = tf.zeros((tf.shape(images)[0], classes))
                return scores if more.get("flat", True) else scores[None]

        net = Net()
        signatures = {more.get("signature", "serving_default"): net.call}
        tf.saved_model.save(net, str(folder), signatures=signatures)
        return folder

    def test_a_damaged_file(self, tmp_path: Path) -> None:
        (tmp_path / "saved_model.pb").write_bytes(b"damaged")
        assert "the model s3://b/m/ cannot be read: " in self.refusal(tmp_path)

    def test_another_signature(self, tmp_path: Path) -> None:
        folder = self.saved(tmp_path / "m", [None, 8, 8, 1], signature="other")
        assert self.refusal(folder) == "the model s3://b/m/ has no signature serving_default"

    def test_an_input_that_is_no_image(self, tmp_path: Path) -> None:
        assert "must take one input (n, height, width, 1 or 3)" in self.refusal(self.saved(tmp_path / "m", [None, 8]))

    def test_batches_of_one_size_only(self, tmp_path: Path) -> None:
        assert "in batches of any size" in self.refusal(self.saved(tmp_path / "m", [4, 8, 8, 1]))

    def test_images_of_any_size_need_a_size_option(self, tmp_path: Path) -> None:
        from inference.model import Classifier

        folder = self.saved(tmp_path / "m", [None, None, None, 3])
        assert "say which with --image-size" in self.refusal(folder)
        import tensorflow as tf

        assert Classifier(tf, folder, "m", 16).height == 16

    def test_an_output_that_is_no_row_of_scores(self, tmp_path: Path) -> None:
        folder = self.saved(tmp_path / "m", [None, 8, 8, 1], flat=False)
        assert "must give one output (n, classes)" in self.refusal(folder)

    def test_labels_that_do_not_fit(self, tmp_path: Path) -> None:
        folder = self.saved(tmp_path / "m", [None, 8, 8, 1])
        (folder / "labels.txt").write_text("one\ntwo\n")
        assert self.refusal(folder) == "the model s3://b/m/ has 3 classes, but 2 lines in labels.txt"


def test_a_network_of_keras_applications_can_be_baked_into_the_image(digits: Path, tmp_path: Path) -> None:
    """With random weights: those of ImageNet are a download."""
    baked = tmp_path / "model"
    command = ["bake.py", "--network", "MobileNet", "--weights", "none", "--out", str(baked)]
    subprocess.run([sys.executable, *command], cwd=FOLDER, check=True, capture_output=True, timeout=s3.PATIENCE_S)
    part = tmp_path / "part"
    ended = inference("0:2", str(part), "--images", str(digits / "images"), "--model", str(baked))
    assert ended.code == 0, ended.err
    assert [len(row["top"]) for row in s3.rows(part.read_text())] == [5, 5]


def test_the_readme_s_commands_do_what_they_say(digits: Path) -> None:
    """Those for a shell in the image's folder; `argosy submit` comes below, `make demo-tensorflow` has its own test."""
    blocks = re.findall(r"^```\n(.*?)^```", (FOLDER / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("python ")]
    assert len(commands) >= 3
    out = digits.parent / "readme"
    for command in commands:
        words = [word.replace("out/", f"{out}/") for word in shlex.split(command)[1:]]
        process = subprocess.run(
            [sys.executable, *words], cwd=FOLDER, capture_output=True, text=True, timeout=s3.PATIENCE_S, check=False
        )
        assert process.returncode == 0, f"{command}: {process.stderr}"
    assert len(s3.rows((out / "part.jsonl").read_text())) == COUNT


def test_the_readme_s_runs_end_with_a_row_for_each_image(digits: Path, tmp_path: Path) -> None:
    """Run unchanged, over two tasks of four images. The GPUs are simulated, so their flavour is not used."""
    with local_aws(local_options()) as aws:
        bucket = s3.make_bucket(aws.endpoint_url, "my-bucket")
        for number in range(8):
            bucket.put(f"images/{number:04d}.png", (digits / "images" / f"{number:04d}.png").read_bytes())
        bucket.put("urls.txt", "".join(f"s3://my-bucket/images/{number:04d}.png\n" for number in range(8)).encode())
        bucket.put_folder("model/", digits / "model")
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        shell = Shell(tmp_path, {"PATH": path, "ARGOSY_ENDPOINT_URL": aws.endpoint_url})
        lines = [line for line in command_lines(IMAGE) if line.startswith("argosy submit ")]
        assert len(lines) == 2
        for line in lines:
            device = " --set container.environment.INFERENCE_DEVICE=cpu" if "-gpu" in line else ""
            assert "SUCCEEDED" in shell.type(f"{line} --batch-size 4 --num-batches 2{device}")
            merged = shell.type("argosy results RUN --merge --output -")
            assert [(row["index"], len(row["top"])) for row in s3.rows(merged)] == [(number, 5) for number in range(8)]
