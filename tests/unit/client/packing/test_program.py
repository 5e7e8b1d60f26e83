"""What is uploaded of a program, and what the spec that is sent says of it."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from argosy.client.access import Access
from argosy.client.aws_clients import Connection
from argosy.client.errors import ArgosyError, InvalidInput
from argosy.client.packing.archive import Parcel
from argosy.client.packing.program import Packer, pack, target_of, unpacked
from argosy.client.packing.upload import put, put_files
from argosy.client.packing.wheels import Resolver, Target
from argosy.layout import KEPT
from argosy.model.input_folder import read_folder
from tests.fakes.cli import DEPLOYMENT, Objects, World, refusal

BUCKET = "argosy-results"
SPEC: dict[str, Any] = {"version": 1, "name": "n", "run": ["python", "x.py"], "array": {"size": 1}, "workdir": "."}


def access_of(world: World, **connection: Any) -> Access:
    return Access(Connection(**connection), world.client)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "x.py").write_text("print('hello')\n")
    return tmp_path


class Wheels:
    """pip, with one wheel for every requirement."""

    def __call__(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        flag = "--dest" if "--dest" in words else "--wheel-dir"
        for name in words[words.index("--") + 1 :]:
            (Path(words[words.index(flag) + 1]) / f"{name}-1-py3-none-any.whl").write_bytes(name.encode())
        return subprocess.CompletedProcess(words, 0, "", "")


def job_of(world: World, form: dict[str, Any]) -> dict[str, Any]:
    assert form["job"].startswith(f"s3://{BUCKET}/argosy/programs/jobs/")
    found: dict[str, Any] = json.loads(stored(world, form["job"]))
    return found


def stored(world: World, uri: str) -> bytes:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    return world.objects.bodies[bucket, key]


def test_a_folder_and_packages_become_a_job(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    world, told = World(), []
    resolver = Resolver(tmp_path_factory.mktemp("cache"), Wheels(), lambda: 0.0)
    packer = Packer(resolver=resolver, tell=told.append)
    form = packer.pack({**SPEC, "packages": ["a", "b"], "setup": "make"}, folder, access_of(world))
    assert {name: form[name] for name in form if name != "job"} == unpacked(SPEC)
    job = job_of(world, form)
    assert (job["protocol"], job["setup"]) == (1, "make")
    assert job["limits"] == {"resultFiles": 10_000, "resultBytes": 53_687_091_200}
    assert [each["kind"] for each in job["archives"]] == ["program", "wheel", "wheel"]
    program, a, _ = job["archives"]
    with tarfile.open(fileobj=io.BytesIO(stored(world, program["uri"]))) as archive:
        assert archive.getnames() == ["x.py"]
    assert program["uri"].endswith(f"argosy/programs/archives/{program['sha256']}.tar.gz")
    assert program["bytes"] == len(stored(world, program["uri"]))
    assert a["uri"].endswith(f"argosy/programs/wheels/{a['sha256']}.whl")
    assert stored(world, a["uri"]) == b"a"
    sent = sum(each["bytes"] for each in job["archives"])
    assert told == [f"packing {folder}: 1 file", "packages for Python 3.12: a, b", f"uploaded {sent} bytes"]


def test_heavy_packages_are_taken_with_a_word_about_images(tmp_path: Path) -> None:
    told: list[str] = []
    packer = Packer(resolver=Resolver(tmp_path / "cache", Wheels(), lambda: 0.0), tell=told.append, heavy=3)
    packer.pack({**unpacked(SPEC), "packages": ["abc"]}, tmp_path, access_of(World()))
    assert told == ["packages for Python 3.12: abc", "uploaded 3 bytes"]
    packer.pack({**unpacked(SPEC), "packages": ["abcd"]}, tmp_path, access_of(World()))
    assert told[-2].startswith("the packages are 0.0 GiB, which each task downloads: with an image that has them")


def test_inputs_of_this_machine_become_addresses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_CACHE", str(folder.parent / "cache"))
    (folder / "images").mkdir()
    (folder / "images" / "0.jpg").write_text("zero")
    world, told = World(), []
    given = ["./images/${index}.jpg", "s3://data/x", "images", "${dependency.a.output}", "x.py"]
    form = Packer(tell=told.append).pack({**unpacked(SPEC), "inputs": given}, folder, access_of(world))
    images, file = form["inputs"][2], form["inputs"][4]
    assert form["inputs"] == [f"{images}${{index}}.jpg", "s3://data/x", images, "${dependency.a.output}", file]
    assert images.startswith(f"s3://{BUCKET}/argosy/programs/inputs/folders/")
    sent = sum(len(body) for (_, key), body in world.objects.bodies.items() if images[-65:-1] in key or len(body) == 4)
    assert told[0] == f"./images/: 1 file, 4 bytes; uploaded {sent} bytes"
    assert told[1] == "images: 1 file, 4 bytes; uploaded already"
    kept = Packer(keeps=True).pack({**unpacked(SPEC), "inputs": "images"}, folder, access_of(world))
    assert kept["inputs"][0].startswith(f"s3://{BUCKET}/argosy/programs/kept/folders/")


@pytest.mark.parametrize(
    ("inputs", "left"),
    [("images", None), (["images"], None), (["s3://b/x", "a/${index}"], ["s3://b/x"]), ("s3://b/x", "s3://b/x")],
)
def test_a_deployment_is_asked_about_the_other_inputs(inputs: Any, left: Any) -> None:
    assert unpacked({"name": "n", "inputs": inputs}).get("inputs") == left


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (["python", "x.py", "data/x.csv"], ["data/x.csv"]),
        (["python", "x.py", "--data=data/x.csv", "data", "other.txt"], ["data/x.csv", "data"]),
        ("cat <data/x.csv | sort > 'out'", ["data/x.csv"]),
        (["python", "x.py", "${item}", ".", "/etc", "..", "", "missing"], []),
    ],
)
def test_an_ignored_file_that_the_command_names_is_said_with_the_rule(folder: Path, run: Any, said: list[str]) -> None:
    (folder / ".gitignore").write_text("# large\ndata/\n")
    (folder / "data").mkdir()
    (folder / "data" / "x.csv").write_text("1")
    (folder / "other.txt").write_text("")
    told: list[str] = []
    Packer(tell=told.append).pack({**SPEC, "run": run}, folder, access_of(World()))
    why = f"which the command names, is not uploaded: {folder}/.gitignore, line 2: data/"
    assert [each for each in told if "which the command" in each] == [f"{name}, {why}" for name in said]


def test_what_is_never_uploaded_is_said_when_the_command_names_it(folder: Path) -> None:
    (folder / "env").mkdir()
    (folder / "env" / "pyvenv.cfg").write_text("")
    told: list[str] = []
    Packer(tell=told.append).pack({**SPEC, "run": ["python", "x.py", "env"]}, folder, access_of(World()))
    assert told[0] == "env, which the command names, is not uploaded: env never is"


@contextmanager
def errors_in(path: Path) -> Iterator[None]:
    """Standard error goes to this file meanwhile, as after `2> FILE`."""
    kept = os.dup(2)
    with path.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def test_the_file_that_the_command_writes_is_left_out(folder: Path) -> None:
    told: list[str] = []
    with errors_in(folder / "log"):
        pack(SPEC, folder, access_of(World()), tell=told.append)
    assert told[0] == "log, which this command writes, is not uploaded"


def test_a_folder_in_which_a_file_changes_is_read_again(folder: Path) -> None:
    told: list[str] = []

    def tell_and_log(sentence: str) -> None:
        told.append(sentence)
        if len(told) < 3:
            (folder / "log").write_text("\n".join(told))

    (folder / "log").touch()
    world = World()
    form = pack(SPEC, folder, access_of(world), tell=tell_and_log)
    [program] = job_of(world, form)["archives"]
    with tarfile.open(fileobj=io.BytesIO(stored(world, program["uri"]))) as archive:
        log = archive.extractfile("log")
        assert log is not None
        assert log.read().decode().splitlines() == told[:2]
    assert "log could not be packed: it changed in the meantime. Reading the folder again." in told[1]


def test_a_folder_that_always_changes_is_reported(folder: Path) -> None:
    (folder / "log").touch()

    def log(sentence: str) -> None:
        with (folder / "log").open("a") as file:
            file.write(sentence)

    with pytest.raises(InvalidInput, match="log could not be packed"):
        pack(SPEC, folder, access_of(World()), tell=log)


def test_of_a_large_program_only_what_changed_is_sent(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    world, data, told = World(), bytearray(random.Random(1).randbytes(6_000_000)), list[str]()
    (folder / "model.bin").write_bytes(data)
    (folder / "x-y").mkdir()
    packer = Packer(Resolver(tmp_path_factory.mktemp("cache")), tell=told.append)
    first = packer.pack(SPEC, folder, access_of(world))
    [program] = job_of(world, first)["archives"]
    assert (program["kind"], program["bytes"]) == ("program", 6_000_015)
    uploaded = read_folder(stored(world, program["uri"].rstrip("/")))
    assert [each.name for each in uploaded.files] == ["model.bin", "x.py"]
    assert uploaded.empty_folders == ("x-y",)
    assert (
        b"".join(stored(world, f"s3://{BUCKET}/{KEPT}chunks/{each.sha256}") for each in uploaded.chunks)[:9] == data[:9]
    )
    before = set(world.objects.bodies)
    data[3_000_000] ^= 1
    (folder / "model.bin").write_bytes(data)
    again = packer.pack(SPEC, folder, access_of(world))
    assert again["job"] != first["job"]
    assert sum(len(world.objects.bodies[each]) for each in set(world.objects.bodies) - before) < 4_000_000


def test_what_is_there_already_is_not_sent_again(folder: Path) -> None:
    world, sent = World(), []
    first = pack(SPEC, folder, access_of(world), progress=lambda *each: sent.append(each))
    assert len(world.objects.written) == 2
    assert sent == [(sent[0][1], sent[0][1])]
    again = pack(SPEC, folder, access_of(world), progress=lambda *each: sent.append(each))
    assert (again, len(world.objects.written), len(sent)) == (first, 2, 1)
    (folder / "x.py").write_text("other")
    assert pack(SPEC, folder, access_of(world)) != first
    assert len(world.objects.written) == 4


def test_a_spec_with_nothing_to_pack_reaches_for_nothing(folder: Path) -> None:
    world = World()
    bare = unpacked(SPEC)
    assert pack(bare, folder, access_of(world)) == bare
    assert world.connections == []


def test_a_setup_alone_makes_a_job_without_archives(folder: Path) -> None:
    world = World()
    form = pack({**unpacked(SPEC), "setup": "pip list"}, folder, access_of(world))
    assert job_of(world, form)["archives"] == []


def test_a_missing_right_is_named(folder: Path) -> None:
    world = World()
    world.objects.refuses_writes = refusal("AccessDenied", operation="PutObject")
    with pytest.raises(
        ArgosyError, match=f"You have no permission to upload programs to s3://{BUCKET}/argosy/programs/"
    ) as said:
        pack(SPEC, folder, access_of(world))
    assert "argosy-submitter" in said.value.next_step
    with pytest.raises(ArgosyError, match="You have no permission to upload programs"):
        put(access_of(world), b"x", ".bin")


def test_other_troubles_of_s3_stay_what_they_are(folder: Path) -> None:
    world = World()
    world.objects.refuses_writes = refusal("SlowDown", operation="PutObject")
    with pytest.raises(Exception, match="SlowDown"):
        pack(SPEC, folder, access_of(world))


def test_bytes_lie_under_their_digest_and_are_put_once() -> None:
    world = World()
    uri = put(access_of(world), b"items", ".bin")
    assert uri.startswith(f"s3://{BUCKET}/argosy/programs/data/")
    assert put(access_of(world), b"items", ".bin") == uri
    assert stored(world, uri) == b"items"
    assert len(world.objects.written) == 1


@pytest.mark.parametrize(
    ("run", "setup", "said"),
    [
        (["python", "nope.py"], None, "nope.py is not among the files that are uploaded"),
        (["./nope", "x"], None, "nope is not among the files that are uploaded"),
        (["./x.py"], None, "x.py is not executable"),
        (["python", "ignored.py"], None, "ignored.py is not among the files that are uploaded"),
        (["python", "./x.py"], None, ""),
        (["python", "nope.py"], "make nope.py", ""),
        (["python", "-c", "1"], None, ""),
        (["python"], None, ""),
        (["python", "${item}.py"], None, ""),
        (["python", "$${x}.py"], None, "${x}.py is not among the files that are uploaded"),
        (["python", "/opt/main.py"], None, ""),
        (["/usr/bin/env"], None, ""),
        (["sort", "nope"], None, ""),
        ("python nope.py", None, ""),
    ],
)
def test_a_program_outside_its_folder_is_reported_before_anything_is_sent(
    folder: Path, run: Any, setup: str | None, said: str
) -> None:
    (folder / "ignored.py").write_text("")
    (folder / ".gitignore").write_text("ignored.py\n")
    world, spec = World(), {**SPEC, "run": run, **({"setup": setup} if setup else {})}
    if not said:
        pack(spec, folder, access_of(world))
        return
    with pytest.raises(InvalidInput) as refused:
        pack(spec, folder, access_of(world))
    assert refused.value.message == f"{said} ({folder})."
    assert world.objects.written == []


class Endless(Objects):
    """The first object fails; all others would take forever, and end when they are stopped."""

    went_on = False

    def upload_file(self, path: str, bucket: str, key: str, Callback: Callable[[int], None]) -> None:  # noqa: N803
        if key.endswith("/0"):
            raise ValueError("the network is gone")
        give_up = time.monotonic() + 20.0
        while time.monotonic() < give_up:
            Callback(0)
        self.went_on = True


def test_one_failure_ends_all_uploads(tmp_path: Path) -> None:
    """So does Ctrl-C: running uploads stop."""
    world = World(objects=Endless())
    parcels = []
    for number in range(20):
        path = tmp_path / str(number)
        path.write_bytes(b"x")
        parcels.append((Parcel(path, str(number), 1, "wheel"), f"s3://{BUCKET}/argosy/programs/{number}"))
    with pytest.raises(ValueError, match="the network is gone"):
        put_files(access_of(world), parcels)
    assert isinstance(world.objects, Endless)
    assert not world.objects.went_on


def with_python(version: str) -> World:
    world = World()
    world.parameters.values["/argosy/deployment"] = json.dumps({**DEPLOYMENT, "python": version})
    return world


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({}, Target("3.13")),
        ({"container": {"image": "argosy/python"}}, Target("3.13")),
        (
            {"container": {"image": "argosy/python:3.11"}, "resources": {"architecture": "arm64"}},
            Target("3.11", "arm64"),
        ),
    ],
)
def test_packages_are_for_the_python_of_the_image(fields: dict[str, Any], target: Target) -> None:
    assert target_of({**SPEC, **fields}, access_of(with_python("3.13"))) == target


def test_a_deployment_that_does_not_say_has_the_stock_python() -> None:
    assert target_of(SPEC, access_of(World())) == Target("3.12")


def test_local_mode_with_this_python_may_build_what_has_no_wheel() -> None:
    here = Target.here()
    local = {"endpoint_url": "http://127.0.0.1:4566"}
    assert target_of(SPEC, access_of(with_python(here.python), **local)) == here
    assert target_of(SPEC, access_of(with_python("3.99"), **local)) == Target("3.99")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"container": {"image": "debian:12"}}, "this run's image is debian:12"),
        ({"resources": {"architecture": "any"}}, "resources.architecture is any"),
    ],
)
def test_packages_for_an_unknown_python_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        target_of({**SPEC, **fields}, access_of(World()))


def run_with(world: World, form: dict[str, Any]) -> dict[str, Any]:
    """DescribeRun's reply for a run of this spec, with its spec next to its results."""
    world.objects.bodies[BUCKET, "n-1/spec.json"] = json.dumps(form).encode()
    return {"runId": "n-1", "output": f"s3://{BUCKET}/n-1/", "programs": [{"job": form["job"]}]}


def test_another_version_of_a_program_keeps_the_packages_the_setup_and_the_bounds(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    world = World()
    packer = Packer(resolver=Resolver(tmp_path_factory.mktemp("cache"), run=Wheels()))
    form = packer.pack({**SPEC, "packages": ["numpy"], "setup": "true"}, folder, access_of(world))
    run, before = run_with(world, form), job_of(world, form)
    (folder / "x.py").write_text("print('fixed')\n")
    job = packer.repack(run, folder, access_of(world))
    after = job_of(world, {"job": job})
    assert [each["kind"] for each in after["archives"]] == ["program", "wheel"]
    assert after["archives"][0] != before["archives"][0]
    assert {**after, "archives": after["archives"][1:]} == {**before, "archives": before["archives"][1:]}
    assert packer.repack(run, folder, access_of(world)) == job, "the same folder is the same version"


def test_another_version_has_to_hold_the_file_that_the_run_starts(folder: Path, tmp_path: Path) -> None:
    world = World()
    run = run_with(world, pack(SPEC, folder, access_of(world)))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "y.py").write_text("")
    with pytest.raises(InvalidInput, match=r"x\.py is not among the files"):
        Packer().repack(run, tmp_path / "other", access_of(world))


def test_a_run_without_a_folder_of_its_own_has_no_other_version(folder: Path) -> None:
    world = World()
    run = run_with(world, pack({**SPEC, "workdir": None, "run": "true", "setup": "true"}, folder, access_of(world)))
    with pytest.raises(InvalidInput, match="no folder with its program"):
        Packer().repack(run, folder, access_of(world))
