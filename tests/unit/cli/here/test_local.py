"""`local`: its output for a newcomer."""

from __future__ import annotations

import errno
import json
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from argosy.cli.here.local import cannot_start, machine, pythons_of, settings_of, try_port, welcome
from argosy.cli.here.runtime import engine_of
from argosy.cli.problems import CliError
from argosy.local.gpus import Gpu
from argosy.local.options import LocalOptions
from tests.container_engines import install_fake
from tests.fakes.mps import install_mps


def test_the_welcome_names_the_next_commands() -> None:
    lines = welcome("http://127.0.0.1:4566")
    assert lines[0].startswith("Local AWS is ready at http://127.0.0.1:4566")
    assert any("argosy submit containers/digits/run.yaml" in line for line in lines)


def test_the_welcome_says_how_programs_of_aws_get_the_key_and_where_the_state_is() -> None:
    lines = welcome("http://127.0.0.1:4566", Path("/data/argosy/local"))
    assert "kept in /data/argosy/local" in lines[0]
    assert '  eval "$(argosy local env)"' in lines
    assert '  eval "$(argosy local env --port 4567)"' in welcome("http://127.0.0.1:4567")
    assert "Nothing is kept" in welcome("http://127.0.0.1:4566")[0]


def test_a_python_for_some_images_is_used_as_given() -> None:
    """Not resolved: the link in an environment's bin/ makes it that environment's."""
    here = Path(sys.executable)
    assert pythons_of([f"tensorflow-*={here}", f"sweep={here}"]) == {"tensorflow-*": str(here), "sweep": str(here)}
    assert pythons_of([]) == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("python", "must be IMAGES=PATH"),
        ("=python", "must be IMAGES=PATH"),
        ("x=", "must be IMAGES=PATH"),
        ("x=/nowhere/python", "/nowhere/python is not an executable program"),
        ("x=/tmp", "/tmp is not an executable program"),
    ],
)
def test_a_python_that_cannot_be_run_is_refused(text: str, said: str) -> None:
    with pytest.raises(CliError, match=said):
        pythons_of([text])


def test_a_missing_tensorflow_environment_comes_with_what_makes_it() -> None:
    with pytest.raises(CliError) as refused:
        pythons_of(["tensorflow-*=nowhere/.venv-tensorflow/bin/python"])
    assert refused.value.next_step == "type `make tensorflow`"


def test_regions_are_chosen_by_name_and_the_first_is_home() -> None:
    settings = settings_of(None, "eu-west-1, us-east-1")
    assert (settings.region, settings.cells) == ("eu-west-1", ("eu-west-1", "us-east-1"))
    assert {name for name, _ in settings.pools("eu-west-1")} == {name for name, _ in settings.pools("us-east-1")}


@pytest.mark.parametrize("cells", ["mars", "us-east-1,us-east-1", ",", "us-east-1,,eu-west-1"])
def test_anything_but_a_list_of_regions_is_refused(cells: str) -> None:
    with pytest.raises(CliError, match="is not a list of Regions"):
        settings_of(None, cells)


def written(folder: Path, settings: object) -> Path:
    file = folder / "settings.json"
    file.write_text(json.dumps(settings), encoding="utf-8")
    return file


TRIED = {"cells": ["eu-west-1"], "instanceTypes": {"cpu": ["m7i.large"], "gpu": []}, "maxInstances": 3}


@pytest.mark.parametrize("shape", [TRIED, {"app": "x", "context": {"argosy": TRIED, "bundle": "full"}}])
def test_what_a_settings_file_names_replaces_local_modes_own(tmp_path: Path, shape: object) -> None:
    settings = settings_of(written(tmp_path, shape), "")
    assert {name for name, _ in settings.pools("eu-west-1")} == {"m7i.large"}
    assert (settings.cells, settings.max_instances) == (("eu-west-1",), 3)
    assert settings.linger_s == settings_of(None, "").linger_s == 10
    assert settings_of(written(tmp_path, shape), "us-east-1").cells == ("us-east-1",)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([], "contains no settings"),
        ({"context": {"argosy": 5}}, "contains no settings"),
        ({"maxInstance": 3}, "are invalid"),
        ({"cells": ["mars"]}, "are invalid"),
    ],
)
def test_impossible_settings_are_refused(tmp_path: Path, shape: object, said: str) -> None:
    with pytest.raises(CliError, match=said):
        settings_of(written(tmp_path, shape), "")


def test_a_refused_setting_is_named_with_its_fault(tmp_path: Path) -> None:
    wrong = {"maxInstances": -1, "instanceTypes": ["c5.large"], "maxInstance": 3}
    with pytest.raises(CliError) as refused:
        settings_of(written(tmp_path, wrong), "")
    assert refused.value.details == [
        "instanceTypes: should be a JSON object, as docs/reference/settings.md shows",
        "maxInstance: is not a setting",
        "maxInstances: should be greater than or equal to 1",
    ]


def test_an_unreadable_settings_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "not.json").write_text("{", encoding="utf-8")
    for file in (tmp_path / "none.json", tmp_path / "not.json"):
        with pytest.raises(CliError, match="cannot be read"):
            settings_of(file, "")


def test_another_base_for_images_is_a_setting_like_any_other() -> None:
    assert settings_of(None, base_image="localhost/base").base_image == "localhost/base"
    with pytest.raises(CliError) as refused:
        settings_of(None, base_image="two words")
    assert refused.value.message == "The settings are invalid."
    assert refused.value.details[0].startswith("baseImage: ")


def test_only_engines_that_work_here_run_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine_of("process") is None
    with pytest.raises(CliError, match="--runtime is process, podman or docker, not lxc"):
        engine_of("lxc")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="--runtime podman: there is no podman on PATH"):
        engine_of("podman")
    install_fake(tmp_path, monkeypatch)
    assert engine_of("podman") == "podman"


@pytest.mark.parametrize(
    ("fault", "said", "step"),
    [
        (OSError(errno.EADDRINUSE, "Address already in use"), "Cannot listen on 127.0.0.1:4566", "--port 4567"),
        (OSError(errno.EACCES, "Permission denied", "/tmp/x"), "cannot start: .*/tmp/x", ""),
        (OSError(errno.ENOSPC, "No space left on device"), "cannot start: .*No space", ""),
    ],
)
def test_what_keeps_local_mode_from_starting_is_named_and_is_not_always_the_port(
    fault: OSError, said: str, step: str
) -> None:
    refusal = cannot_start(4566, fault)
    assert re.search(said, refusal.message)
    assert step in refusal.next_step
    assert bool(step) == bool(refusal.next_step)


def test_a_taken_port_is_reported_before_anything_is_made() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CliError, match=f"Cannot listen on 127.0.0.1:{port}"):
            try_port(port)
    try_port(port)
    try_port(0)


def test_behind_the_last_port_a_free_one_is_proposed() -> None:
    assert cannot_start(65_535, OSError(errno.EADDRINUSE, "in use")).next_step.endswith("--port 0")


def test_the_greeting_says_why_gpus_are_not_shared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    gpu = Gpu("GPU-a", "0", "NVIDIA H200", 143_771)
    most = "It runs 5 programs at once (--processes)."
    assert machine(LocalOptions(processes=5)).endswith(f"GiB, simulated GPUs. {most}")
    without = f"1 x NVIDIA H200 (140 GiB). {most} Its GPUs are not shared: nvidia-cuda-mps-control is not installed."
    assert machine(LocalOptions(gpus=(gpu,), processes=5)).endswith(without)
    install_mps(tmp_path)
    assert machine(LocalOptions(gpus=(gpu,), processes=5)).endswith(f"1 x NVIDIA H200 (140 GiB). {most}")
    slices = LocalOptions(gpus=(replace(gpu, id="MIG-c"),))
    assert machine(slices).endswith("not shared: that takes whole GPUs of NVIDIA.")
