"""The inference image's program as far as it needs no TensorFlow: arguments, sources, checkpoints, refusals, stops."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import types
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import argosy_storage as storage
import numpy as np
import pytest
from inference import checkpoints, devices, fetching, sources
from inference.arguments import Request, read_request
from inference.pipeline import Batch
from inference.sources import Picture
from inference.work import Work

from argosy.aws.cell import PartSize
from argosy.aws.manifest import part_from
from argosy.model.runs import ManifestBound
from argosy.spec import parse as spec
from argosy.spec import shards
from argosy.spec.file import check_text
from tests.fakes.commands import outcome_of
from tests.fakes.s3_answers import answering

pytestmark = pytest.mark.slow

CONTAINERS = Path(__file__).resolve().parents[3] / "containers"
FOLDER = CONTAINERS / "tensorflow-inference"


def request(*arguments: str, **environment: str) -> Request:
    return read_request(arguments, environment)


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, **environment: str) -> str:
    with pytest.raises(SystemExit) as ended:
        read_request(arguments, environment)
    assert ended.value.code == 64
    return capsys.readouterr().err.splitlines()[-1]


def run(*arguments: str, **environment: str) -> tuple[int, str]:
    """Exit code and standard error of the program."""
    process = outcome_of(["program", "inference", *arguments], FOLDER, **environment)
    assert "Traceback" not in process.stderr
    return process.returncode, process.stderr


@pytest.fixture(scope="module")
def s3_that_refuses() -> Iterator[str]:
    with answering() as endpoint:
        yield endpoint


# --- arguments --------------------------------------------------------------------------------------------------------


def test_the_original_s_two_arguments_are_understood() -> None:
    found = request("0:1000", "s3://bucket/key", "--images", "s3://bucket/images/")
    assert (found.start, found.end, found.output, found.images) == (0, 1000, "s3://bucket/key", "s3://bucket/images/")
    assert (found.top, found.batch_size, found.model) == (5, 32, "/model")
    assert found.checkpoint_seconds == 120
    assert request("0:1", "x", "--images", "i", INFERENCE_CHECKPOINT_SECONDS="2.5").checkpoint_seconds == 2.5


def test_the_environment_of_a_task_is_enough() -> None:
    found = request(
        ARGOSY_RANGE="100:200",
        ARGOSY_PART_URI="s3://b/run/parts/part-0000001.jsonl",
        ARGOSY_OUTPUT_URI="s3://b/run/attempts/1/2/",
        ARGOSY_TASK_ATTEMPT="2",
        NVIDIA_VISIBLE_DEVICES="GPU-a,GPU-b",
        INFERENCE_URLS="s3://b/urls.txt",
        INFERENCE_TOP="3",
        INFERENCE_BATCH_SIZE="64",
    )
    assert (found.start, found.end, found.attempt, found.top, found.batch_size) == (100, 200, 2, 3, 64)
    assert (found.source, found.attempt_folder) == ("s3://b/urls.txt", "s3://b/run/attempts/1/2/")
    assert found.gpus == ("GPU-a", "GPU-b")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["5:5", "x", "--images", "i"], "the range 5:5 is empty"),
        (["9:5", "x", "--images", "i"], "the range 9:5 is reversed"),
        (["5", "x", "--images", "i"], "the range '5' is not START:END"),
        (["-1:5", "x", "--images", "i"], "unrecognized arguments"),
        (["0:5", "--images", "i"], "no output was given, and ARGOSY_PART_URI is not set"),
        (["--images", "i"], "no range was given, and ARGOSY_RANGE is not set"),
        (["0:5", "x"], "give one of --images FOLDER and --urls LIST"),
        (["0:5", "x", "--images", "i", "--urls", "u"], "give one of --images FOLDER and --urls LIST"),
        (["0:5", "x", "--images", "i", "--top", "0"], "--top must be a whole number from 1 to 1000, not '0'"),
        (["0:5", "x", "--images", "i", "--seconds-per-image", "soon"], "0 or more, not 'soon'"),
        (
            ["0:5", "x", "--images", "i", "--checkpoint-seconds", "-1"],
            "--checkpoint-seconds must be a number of seconds",
        ),
        (["0:5", "x", "--images", "i", "--device", "tpu"], "--device must be auto or cpu, not 'tpu'"),
        (["0:5", "x", "--images", "i", "--colour", "red"], "unrecognized arguments"),
    ],
)
def test_a_bad_argument_is_refused_in_one_sentence(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert complaint in refusal(capsys, *arguments)


def test_every_fault_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "9:5", "--top", "x", ARGOSY_TASK_ATTEMPT="first", INFERENCE_BATCHSIZE="8")
    for part in (
        "INFERENCE_BATCHSIZE (do you mean INFERENCE_BATCH_SIZE?)",
        "reversed",
        "'first'",
        "--top",
        "no output",
    ):
        assert part in said


def test_an_unknown_setting_that_resembles_none_gets_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    said = refusal(capsys, "0:5", "x", "--images", "i", INFERENCE_QQQ="1")
    assert "unknown setting INFERENCE_QQQ (known: INFERENCE_IMAGES, INFERENCE_URLS" in said


# --- sources ----------------------------------------------------------------------------------------------------------


def test_a_folder_s_images_are_numbered_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/2.png", "b/10.JPG", "a.jpeg", "notes.txt", "c.gif"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = sources.pictures(request("1:4", "x", "--images", str(tmp_path)), 1)
    assert [(each.index, Path(each.address).name) for each in found] == [(1, "10.JPG"), (2, "2.png"), (3, "c.gif")]


def test_a_list_has_addresses_with_and_without_names(tmp_path: Path) -> None:
    listed = tmp_path / "urls.txt"
    listed.write_text("# ImageNet\nn00004475_6590\thttp://a/1.jpg\n\nhttps://b/2.jpg\n")
    found = sources.pictures(request("0:2", "x", "--urls", str(listed)), 0)
    assert found == [
        Picture(0, "http://a/1.jpg", "n00004475_6590", listed=True),
        Picture(1, "https://b/2.jpg", "", listed=True),
    ]


def test_a_range_past_the_end_is_refused_with_the_number_there_are(tmp_path: Path) -> None:
    (tmp_path / "0.png").touch()
    with pytest.raises(storage.Refused, match="the range 0:2 ends past the 1 images of"):
        sources.pictures(request("0:2", "x", "--images", str(tmp_path)), 0)


# --- fetching ---------------------------------------------------------------------------------------------------------


def fetched(address: str, *, listed: bool = True) -> str:
    with pytest.raises(fetching.DeadImage) as dead:
        fetching.Fetcher(pause=no_try_too_many).fetch(Picture(0, address, listed=listed))
    return str(dead.value)


def no_try_too_many(wait_s: float) -> None:
    raise AssertionError(f"what is dead was waited for, {wait_s} s")


def test_a_dead_address_is_dead_and_says_why(s3_that_refuses: str, tmp_path: Path) -> None:
    assert fetched(f"{s3_that_refuses}/b404/x.jpg").startswith("HTTP 404")
    assert fetched(f"{s3_that_refuses}/b410/x.jpg").startswith("HTTP 410")
    assert fetched(f"{s3_that_refuses}/b403/x.jpg").startswith("HTTP 403")
    assert fetched("http:///x.jpg") == "no answer: no host given"
    assert fetched("http://a b/x.jpg").startswith("no answer: URL can't contain control characters")
    assert fetched("http://[nonsense/x.jpg").startswith("no answer: ")
    assert fetched("/etc/hostname") == "not an http://, https:// or s3:// address"
    assert "No such file" in fetched(str(tmp_path / "gone.png"), listed=False)
    assert "Is a directory" in fetched(str(tmp_path), listed=False)


@pytest.mark.parametrize("code", [408, 429, 500, 503])
def test_a_busy_server_is_asked_three_times_and_then_it_is_temporary(s3_that_refuses: str, code: int) -> None:
    waits: list[float] = []
    with pytest.raises(storage.Temporary, match=f"/b{code}/x.jpg: HTTP {code}"):
        fetching.Fetcher(pause=waits.append).fetch(Picture(0, f"{s3_that_refuses}/b{code}/x.jpg", listed=True))
    assert waits == [0.5, 2.0]


def test_no_way_out_is_temporary() -> None:
    with pytest.raises(storage.Temporary, match=r"127\.0\.0\.1:9/x\.jpg: no answer: .*refused"):
        fetching.Fetcher(pause=lambda _: None).fetch(GONE)


GONE = Picture(0, "http://127.0.0.1:9/x.jpg", listed=True)


@pytest.mark.parametrize("answer", ["200", "404"])
def test_a_server_that_stays_away_costs_one_row_once_another_address_has_answered(
    s3_that_refuses: str, answer: str
) -> None:
    fetcher = fetching.Fetcher(pause=lambda _: None)
    with contextlib.suppress(fetching.DeadImage):
        fetcher.fetch(Picture(1, f"{s3_that_refuses}/b{answer}/x.jpg", listed=True))
    with pytest.raises(fetching.DeadImage, match=r"no answer: .*refused"):
        fetcher.fetch(GONE)


def test_a_busy_server_or_an_address_that_is_none_proves_no_way_out(s3_that_refuses: str) -> None:
    fetcher = fetching.Fetcher(pause=lambda _: None)
    with pytest.raises(storage.Temporary):
        fetcher.fetch(Picture(1, f"{s3_that_refuses}/b503/x.jpg", listed=True))
    with pytest.raises(fetching.DeadImage):
        fetcher.fetch(Picture(2, "http:///x.jpg", listed=True))
    with pytest.raises(storage.Temporary, match="nothing else has answered either"):
        fetcher.fetch(GONE)


def test_a_server_that_was_given_up_on_is_not_waited_for_again() -> None:
    waits: list[float] = []
    fetcher = fetching.Fetcher(answers=True, pause=waits.append)
    for _ in range(3):
        with pytest.raises(fetching.DeadImage):
            fetcher.fetch(GONE)
    assert waits == [0.5, 2.0]


@pytest.mark.parametrize(
    ("attempt", "urls", "heard"),
    [("1", "s3://b/list", False), ("2", "s3://b/list", True), ("2", "list.txt", False)],
)
def test_a_second_attempt_takes_s3_for_an_answer(attempt: str, urls: str, heard: bool) -> None:
    asked = request("0:3", "x", "--urls", urls, ARGOSY_TASK_ATTEMPT=attempt)
    fetcher = fetching.fetcher_of(asked, pause=lambda _: None)
    with pytest.raises(fetching.DeadImage if heard else storage.Temporary):
        fetcher.fetch(GONE)


def test_a_server_that_comes_back_is_read() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    # the port is free now: the first try is refused, and the server comes while that is waited out
    answers = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nJPG"
    with contextlib.ExitStack() as servers:
        picture = Picture(0, f"http://127.0.0.1:{port}/x.jpg", listed=True)
        fetcher = fetching.Fetcher(pause=lambda _: _serve_once(servers, port, answers))
        assert fetcher.fetch(picture) == b"JPG"


def _serve_once(servers: contextlib.ExitStack, port: int, answer: bytes) -> None:
    listener = servers.enter_context(socket.create_server(("127.0.0.1", port)))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(answer)

    thread = threading.Thread(target=serve)
    thread.start()
    servers.callback(thread.join, 10)


@pytest.mark.parametrize(
    ("reason", "good"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), True),
        (socket.gaierror(socket.EAI_NODATA, "No address associated with hostname"), True),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), False),
        (ssl.SSLCertVerificationError("expired"), True),
        (ssl.SSLError("handshake broken off"), False),
        (TimeoutError("timed out"), False),
    ],
)
def test_only_an_answer_about_the_address_is_for_good(reason: Exception, good: bool) -> None:
    assert fetching.is_final(reason) is good


# --- refusals of the whole program ------------------------------------------------------------------------------------


def images(folder: Path, count: int = 3) -> str:
    folder.mkdir(exist_ok=True)
    for number in range(count):
        (folder / f"{number}.png").touch()
    return str(folder)


def test_a_missing_model_exits_64_before_tensorflow_is_loaded(tmp_path: Path) -> None:
    arguments = ("0:3", str(tmp_path / "part"), "--images", images(tmp_path / "i"))
    code, said = run(*arguments, "--model", str(tmp_path / "none"))
    assert (code, said) == (64, f"inference: there is no model at {tmp_path / 'none'}: it has no saved_model.pb\n")
    assert not (tmp_path / "part").exists()


def test_no_right_to_read_exits_64_and_names_the_right(s3_that_refuses: str, tmp_path: Path) -> None:
    arguments = ("0:3", str(tmp_path / "part"), "--images", "s3://b403/images/")
    code, said = run(*arguments, AWS_ENDPOINT_URL=s3_that_refuses)
    assert code == 64
    assert "s3://b403/images/: permission denied: the task's role may not do this (AccessDenied)" in said
    assert "the deployment's setting inputBuckets" in said
    code, said = run(
        "0:3", "x", "--images", images(tmp_path / "i"), "--model", "s3://b403/m", AWS_ENDPOINT_URL=s3_that_refuses
    )
    assert code == 64
    assert "s3://b403/m/: permission denied" in said


def test_checkpoints_that_may_not_be_listed_are_done_without(s3_that_refuses: str, tmp_path: Path) -> None:
    arguments = ("0:3", "x", "--images", images(tmp_path / "i"), "--model", str(tmp_path / "none"))
    given = {"AWS_ENDPOINT_URL": s3_that_refuses, "ARGOSY_OUTPUT_URI": "s3://b403/attempts/0/1/"}
    code, said = run(*arguments, **given)
    assert code == 64
    assert "no checkpoint can be looked for" in said
    assert "there is no model" in said


def test_a_busy_or_unreachable_s3_exits_75(s3_that_refuses: str) -> None:
    code, said = run("0:3", "/dev/null/x", "--images", "s3://b503/i/", AWS_ENDPOINT_URL=s3_that_refuses)
    assert (code, "SlowDown" in said) == (75, True)
    code, said = run("0:3", "x", "--images", "s3://bucket/i/", AWS_ENDPOINT_URL="http://127.0.0.1:9")
    assert (code, "Could not connect" in said) == (75, True)


def test_an_address_that_is_none_exits_64() -> None:
    code, said = run("0:3", "x", "--urls", "s3://bucket")
    assert (code, said) == (64, "inference: s3://bucket is not s3://BUCKET/KEY\n")


# --- GPUs -------------------------------------------------------------------------------------------------------------


def tensorflow(*, cuda: bool, gpus: Sequence[str] = ()) -> Any:
    """As much of TensorFlow as `devices` uses."""
    hidden: list[str] = []
    config = types.SimpleNamespace(
        set_visible_devices=lambda chosen, kind: hidden.append(kind),
        list_physical_devices=lambda kind: list(gpus),
        experimental=types.SimpleNamespace(
            set_memory_growth=lambda each, on: None, get_device_details=lambda each: {"device_name": each}
        ),
    )
    test = types.SimpleNamespace(is_built_with_cuda=lambda: cuda)
    return types.SimpleNamespace(config=config, test=test, hidden=hidden)


def test_a_pinned_gpu_that_does_not_show_up_may_work_elsewhere() -> None:
    with pytest.raises(devices.NoDevice, match=r"1 GPU is pinned to this task \(GPU-a\), but TensorFlow sees 0"):
        devices.use(tensorflow(cuda=True), ("GPU-a",), "auto")


def test_the_cpu_flavour_refuses_a_gpu_for_good() -> None:
    with pytest.raises(devices.WrongImage, match="2 GPUs are pinned to this task, but this image is the CPU flavour"):
        devices.use(tensorflow(cuda=False), ("GPU-a", "GPU-b"), "auto")


def test_gpus_are_used_when_they_are_there_and_not_forbidden() -> None:
    assert devices.use(tensorflow(cuda=True, gpus=["V100"]), ("GPU-a",), "auto") == "V100"
    without = tensorflow(cuda=True, gpus=["V100"])
    assert devices.use(without, ("GPU-a",), "cpu") == "CPU"
    assert without.hidden == ["GPU"]


def test_all_gpus_are_those_that_tensorflow_sees() -> None:
    """CUDA's own base images set it, also where there is no GPU."""
    given = request("0:3", "x", "--images", "i", NVIDIA_VISIBLE_DEVICES="all").gpus
    assert devices.use(tensorflow(cuda=True, gpus=["V100", "T4"]), given, "auto") == "V100, T4"
    assert devices.use(tensorflow(cuda=True), given, "auto") == "CPU"
    assert devices.use(tensorflow(cuda=False), given, "auto") == "CPU"


# --- checkpoints ------------------------------------------------------------------------------------------------------


def task(folder: Path, attempt: int) -> Request:
    return request(
        "10:20",
        str(folder / "part"),
        "--images",
        "i",
        ARGOSY_OUTPUT_URI=f"{folder}/attempts/0/{attempt}/",
        ARGOSY_TASK_ATTEMPT=str(attempt),
    )


def some_rows(count: int) -> list[str]:
    return [json.dumps({"index": 10 + number, "top": []}) for number in range(count)]


def test_a_retry_takes_the_checkpoint_with_the_most_rows(tmp_path: Path) -> None:
    assert checkpoints.find(task(tmp_path, 1)) == checkpoints.NOTHING
    checkpoints.save(task(tmp_path, 1), some_rows(4))
    longest = checkpoints.save(task(tmp_path, 2), some_rows(7))
    checkpoints.save(task(tmp_path, 3), some_rows(2))
    found = checkpoints.find(task(tmp_path, 4))
    assert (found.address, list(found.rows)) == (longest, some_rows(7))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no checkpoint"),
        ("{}\n", "belongs to other work"),
        ("not json\n", "is no checkpoint"),
        ('{"checkpoint": 1}\n{"no": "index"}\n', "is no checkpoint"),
    ],
)
def test_a_damaged_checkpoint_is_passed_over_with_a_line_in_the_log(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = checkpoints.save(task(tmp_path, 1), some_rows(2))
    Path(checkpoints.save(task(tmp_path, 2), some_rows(9))).write_text(text)
    assert checkpoints.find(task(tmp_path, 3)).address == good
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("target", ["gone", "checkpoint.jsonl"], ids=["gone since it was listed", "not to be read"])
def test_one_that_cannot_be_read_costs_its_own_rows_only(
    tmp_path: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    good = checkpoints.save(task(tmp_path, 1), some_rows(2))
    unreadable = Path(checkpoints.save(task(tmp_path, 2), some_rows(9)))
    unreadable.unlink()
    unreadable.symlink_to(target)  # to nothing, or to itself
    assert checkpoints.find(task(tmp_path, 3)).address == good
    assert f"the checkpoint {unreadable} cannot be read and is passed over: " in capsys.readouterr().err
    Path(good).unlink()
    assert checkpoints.find(task(tmp_path, 3)) == checkpoints.NOTHING


def test_an_s3_that_is_away_is_no_reason_to_do_everything_again(tmp_path: Path, s3_that_refuses: str) -> None:
    """The task ends 75, and its retry finds the checkpoint."""
    code, said = run(
        *("0:3", "x", "--images", images(tmp_path / "i")),
        AWS_ENDPOINT_URL=s3_that_refuses,
        ARGOSY_OUTPUT_URI="s3://b503/attempts/0/1/",
    )
    assert (code, "SlowDown" in said) == (75, True)


def test_checkpoints_lie_where_no_manifest_counts_them() -> None:
    """A task may not delete, so those of an attempt that succeeds stay; they must not become part of its result."""
    stored = checkpoints.address(task(Path("s3://b/run"), 1)).removeprefix("s3:/b/")
    assert stored == "run/attempts/0/checkpoints/1/checkpoint.jsonl"
    run: Any = types.SimpleNamespace(
        tasks={"committed": np.array([1])},
        manifest_to=ManifestBound(),
        task_count=1,
        piece_count=1,
        gang_size=1,
        output="s3://b/run/",
    )
    listing = [(stored.replace("/0/", "/0000000/"), 9), ("run/attempts/0000000/1/rows", 9)]
    assert part_from(run, [listing], PartSize()).objects == {0: [("run/attempts/0000000/1/rows", 9)]}


def test_without_folders_of_attempts_there_is_no_search_of_the_whole_disk() -> None:
    alone = request("0:5", "x", "--images", "i", ARGOSY_OUTPUT_URI="out/")
    assert checkpoints.address(alone) == "./checkpoints/out/checkpoint.jsonl"


class Clock:
    """Seconds that pass when the test says so; reading it may take time too."""

    def __init__(self) -> None:
        self.now, self.step = 0.0, 0.0

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_rows_are_kept_every_so_often_and_only_new_ones(tmp_path: Path) -> None:
    clock, one = Clock(), replace(task(tmp_path, 1), checkpoint_seconds=120.0)
    keeper, rows = checkpoints.Keeper(one, 2, clock), some_rows(9)

    def kept() -> int:
        return len(checkpoints.find(task(tmp_path, 2)).rows)

    found = []
    for now, count in [(0, 3), (119, 4), (120, 2), (121, 5), (240, 6), (241, 6), (362, 6), (363, 7)]:
        clock.now = now
        keeper.look(rows, count)
        found.append(kept())
    assert found == [0, 0, 0, 5, 5, 6, 6, 7]


def test_keeping_takes_a_tenth_of_the_time_at_most(tmp_path: Path) -> None:
    clock = Clock()
    keeper = checkpoints.Keeper(replace(task(tmp_path, 1), checkpoint_seconds=120.0), 0, clock)
    clock.now, clock.step = 120, 30  # each reading of the clock: the write of 30 s
    keeper.look(some_rows(9), 5)
    clock.step = 0
    for now, count in [(420, 5), (480, 6)]:
        clock.now = now
        keeper.look(some_rows(9), 6)
        assert len(checkpoints.find(task(tmp_path, 2)).rows) == count


def test_none_are_kept_without_the_option(tmp_path: Path) -> None:
    clock = Clock()
    keeper = checkpoints.Keeper(replace(task(tmp_path, 1), checkpoint_seconds=0.0), 0, clock)
    clock.now = 1e9
    keeper.look(some_rows(9), 9)
    assert checkpoints.find(task(tmp_path, 2)) == checkpoints.NOTHING


def test_rows_that_cannot_be_kept_now_are_tried_again_later(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.touch()
    clock = Clock()
    one = request("10:20", "x", "--images", "i", ARGOSY_OUTPUT_URI=f"{blocked}/0/1/")
    keeper = checkpoints.Keeper(one, 0, clock)
    for now in (130, 131):
        clock.now = now
        keeper.look(some_rows(3), 3)
    assert capsys.readouterr().err.count("the first 3 of 10 images are not kept: ") == 1
    blocked.unlink()
    clock.now = 260
    keeper.look(some_rows(3), 3)
    assert len(checkpoints.find(one).rows) == 3


def test_a_checkpoint_of_other_work_is_passed_over(tmp_path: Path) -> None:
    checkpoints.save(task(tmp_path, 1), some_rows(4))
    assert checkpoints.find(replace(task(tmp_path, 2), model="another")) == checkpoints.NOTHING
    assert checkpoints.find(replace(task(tmp_path, 2), end=21)) == checkpoints.NOTHING
    checkpoints.save(task(tmp_path, 1), some_rows(4)[1:])  # rows that do not begin where the range does
    assert checkpoints.find(task(tmp_path, 2)) == checkpoints.NOTHING


# --- stops ------------------------------------------------------------------------------------------------------------


class Labels:
    """Stands in for the model: everything is a tench; `classifying` is set while a batch is in hand."""

    def __init__(self, may_end: threading.Event) -> None:
        self.classifying, self.may_end = threading.Event(), may_end

    def top(self, images: Any, count: int) -> list[list[dict[str, object]]]:
        self.classifying.set()
        assert self.may_end.wait(30)
        return [[{"label": "tench", "score": 1.0}] for _ in images]


def batches(count: int, size: int, *, wait: threading.Event | None = None) -> Iterator[Batch]:
    """`count` batches; the last is only read once `wait` is set."""
    for number in range(count):
        if wait is not None and number == count - 1:
            wait.wait(30)
        pictures = [Picture(10 + number * size + k, "a.png") for k in range(size)]
        yield Batch(pictures, [None] * size, [""] * size)


def always() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_all_batches_become_rows_in_order(tmp_path: Path) -> None:
    work = Work(task(tmp_path, 1), Labels(always()), batches(2, 5), [])  # type: ignore[arg-type]
    assert work.finish(threading.Event())
    assert [json.loads(row)["index"] for row in work.rows] == list(range(10, 20))


def test_a_stop_lets_the_batch_in_hand_end_and_begins_no_other(tmp_path: Path) -> None:
    may_end, stopped = threading.Event(), threading.Event()
    labels = Labels(may_end)
    work = Work(task(tmp_path, 1), labels, batches(2, 5), [])  # type: ignore[arg-type]
    ended: list[bool] = []
    waiting = threading.Thread(target=lambda: ended.append(work.finish(stopped)))
    waiting.start()
    assert labels.classifying.wait(30)
    stopped.set()
    may_end.set()
    waiting.join(120)
    assert (ended, len(work.rows)) == ([False], 5)


def test_a_stop_does_not_wait_for_an_image_that_is_being_downloaded(tmp_path: Path) -> None:
    arrives, stopped = threading.Event(), threading.Event()
    labels = Labels(always())
    work = Work(task(tmp_path, 1), labels, batches(2, 5, wait=arrives), [])  # type: ignore[arg-type]
    threading.Thread(target=lambda: labels.classifying.wait(30) and stopped.set()).start()
    assert not work.finish(stopped)
    assert len(work.rows) == 5
    arrives.set()  # the reader may go


def test_rows_are_offered_for_keeping_batch_by_batch_during_the_work(tmp_path: Path) -> None:
    looked, offered = threading.Event(), set()

    class Keeper:
        def look(self, rows: Sequence[str], count: int) -> None:
            assert len(rows) >= count
            offered.add(count)
            if count == 5:
                looked.set()  # only now the second batch can be read

    work = Work(task(tmp_path, 1), Labels(always()), batches(2, 5, wait=looked), [], Keeper())  # type: ignore[arg-type]
    assert work.finish(threading.Event())
    assert looked.is_set()
    assert offered <= {0, 5, 10}


def test_what_the_classification_raises_ends_the_work(tmp_path: Path) -> None:
    def broken() -> Iterator[Batch]:
        yield from batches(1, 5)
        raise storage.Temporary("S3 is away")

    work = Work(task(tmp_path, 1), Labels(always()), broken(), [])  # type: ignore[arg-type]
    with pytest.raises(storage.Temporary, match="S3 is away"):
        work.finish(threading.Event())
    assert checkpoints.find(task(tmp_path, 2)).rows == tuple(work.rows)
    assert len(work.rows) == 5


def test_rows_that_cannot_be_kept_are_reported_and_do_not_hide_the_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken() -> Iterator[Batch]:
        yield from batches(1, 5)
        raise storage.Temporary("the server is away")

    nowhere = request("10:20", "x", "--images", "i", ARGOSY_OUTPUT_URI="/dev/null/attempts/0/1/")
    with pytest.raises(storage.Temporary, match="the server is away"):
        Work(nowhere, Labels(always()), broken(), []).finish(threading.Event())  # type: ignore[arg-type]
    assert "gives up after 5 of 10 images; no checkpoint could be written" in capsys.readouterr().err


def test_trouble_before_a_new_row_leaves_no_second_checkpoint(tmp_path: Path) -> None:
    def broken() -> Iterator[Batch]:
        raise storage.Temporary("the server is away")
        yield

    work = Work(task(tmp_path, 2), Labels(always()), broken(), some_rows(5))  # type: ignore[arg-type]
    with pytest.raises(storage.Temporary):
        work.finish(threading.Event())
    assert checkpoints.find(task(tmp_path, 3)) == checkpoints.NOTHING


def test_the_speed_counts_neither_taken_over_rows_nor_pretended_work(tmp_path: Path) -> None:
    slow = replace(task(tmp_path, 2), seconds_per_image=0.02)
    work = Work(slow, Labels(always()), batches(1, 5), some_rows(5))  # type: ignore[arg-type]
    assert work.finish(threading.Event())
    assert work.resumed == 5
    assert work.seconds < 0.1


# --- run specs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "tasks"), [("run.yaml", 10), ("run-gpu.yaml", 100)])
def test_the_run_specs_next_to_the_program_are_valid_and_name_the_model(name: str, tasks: int) -> None:
    form = spec_form(name)
    assert shards.task_count(form) == tasks
    found = read_request(["0:1", "x"], form["container"]["environment"])
    assert found.source.startswith("s3://")
    assert found.model.startswith("s3://")  # the images that the stacks build have none


def test_the_spec_for_gpus_names_a_definition_that_comes_with_the_image_and_has_one() -> None:
    form = spec_form("run-gpu.yaml")
    described = json.loads((FOLDER / "task-definitions.json").read_text())[form["taskDefinition"]]
    assert (described["image"], described["gpus"]) == ("argosy/tensorflow-inference", 1)


def spec_form(name: str) -> Any:
    return spec.to_json(check_text((FOLDER / name).read_text())[0])
