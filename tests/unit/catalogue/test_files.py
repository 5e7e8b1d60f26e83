"""The catalogue's files: their format, an owner's overrides, and the files that count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from argosy.catalogue.files import FILES, OVERRIDES, overridden, shipped_folder, text_of
from argosy.catalogue.lookup import BANDS, as_of, interruption_band, load_catalogue, offered

NEW = {
    "vcpus": 2, "memoryMib": 4096, "gpus": 0, "gpuModel": None, "gpuMemoryMib": 0, "architecture": "x86_64",
}  # fmt: skip

UNLISTED = {"c8i", "m8i", "g7", "g7e", "p6-b200", "p6-b300", "gr6", "g6f", "gr6f", "p4de", "p5en"}  # in some Regions


def shipped(name: str) -> Any:
    return json.loads((shipped_folder() / name).read_text("utf-8"))


@pytest.mark.parametrize("name", FILES)
def test_writing_a_file_that_has_not_changed_gives_the_same_text(name: str) -> None:
    assert text_of(name, shipped(name)) == (shipped_folder() / name).read_text("utf-8")


def test_every_offered_type_has_a_band_and_every_band_a_meaning() -> None:
    """Except the families that are newer than the Advisor's list."""
    for region in ("us-east-1", "eu-west-1", "ap-northeast-1"):
        unlisted = [name for name in offered(region) if interruption_band(region, name) is None]
        assert len([name for name in unlisted if name.split(".")[0] not in UNLISTED]) <= 1, unlisted
        bands = {interruption_band(region, name) for name in offered(region)} - {None}
        assert bands <= set(range(len(BANDS)))
    assert interruption_band("us-east-1", "z9.large") is None
    assert interruption_band("xx-nowhere-1", "c5.large") is None


def test_what_an_owner_overrides_counts() -> None:
    own = {
        "types": {"c5.large": {"registeredMemoryMib": 3500}, "c9.large": NEW},
        "prices": {"us-east-1": {"c9.large": [0.1, None]}},
    }
    types = overridden("instance_types.json", shipped("instance_types.json"), own)["types"]
    assert types["c5.large"]["registeredMemoryMib"] == 3500
    assert types["c5.large"]["vcpus"] == 2
    assert types["c9.large"] == NEW
    prices = overridden("prices.json", shipped("prices.json"), own)["regions"]["us-east-1"]
    assert prices["c9.large"] == [0.1, None]
    assert prices["c5.large"] == shipped("prices.json")["regions"]["us-east-1"]["c5.large"]
    assert overridden("offered.json", {"regions": {}}, own) == {"regions": {}}


def test_overrides_that_cannot_be_used_are_refused_with_every_fault() -> None:
    own = {"types": {"c9.large": {"vcpus": 2}, "c5.large": {"cpu": 3}}, "offers": {}}
    with pytest.raises(ValueError, match="unknown") as refusal:
        overridden("instance_types.json", shipped("instance_types.json"), own)
    said = str(refusal.value)
    assert "offers is unknown" in said
    assert "types.c9.large is new and lacks architecture, gpuMemoryMib" in said
    assert "types.c5.large has unknown fields: cpu" in said


@pytest.mark.parametrize("pair", [0.1, [0.1], [0, 0.1], [0.1, -1], ["0.1", 0.1], [True, 0.1], [None, 0.1], [1e9, 1]])
def test_a_price_that_is_none_is_refused(pair: Any) -> None:
    with pytest.raises(ValueError, match=r"prices\.us-east-1\.c5\.large must be two prices"):
        overridden("prices.json", shipped("prices.json"), {"prices": {"us-east-1": {"c5.large": pair}}})


def elsewhere(folder: Path, program: str) -> Any:
    """The output of a program that reads the files of a folder instead."""
    environment = {**os.environ, "ARGOSY_CATALOGUE": str(folder)}
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    return json.loads(answer.stdout)


def test_another_folder_may_hold_some_of_the_files_and_overrides(tmp_path: Path) -> None:
    offers = shipped("offered.json")
    offers["zones"] = {"us-east-1": {"us-east-1c": ["c5.large"]}}
    offers["refreshed"] = {"us-east-1": "2026-11-21"}
    (tmp_path / "offered.json").write_text(text_of("offered.json", offers))
    own = {"types": {"c9.large": NEW, "c9.xlarge": NEW}, "prices": {"eu-west-1": {"c9.large": [0.1, None]}}}
    (tmp_path / OVERRIDES).write_text(json.dumps(own))
    program = (
        "import json; from argosy.settings.settings import Settings; from argosy.catalogue.lookup import *;"
        "pools = [zone for name, zone in Settings().pools('us-east-1') if name == 'c5.large'];"
        "new = load_catalogue().get('c9.large');"
        "print(json.dumps([pools, new.on_demand_usd_per_hour, new.typical_spot_usd_per_hour,"
        " 'c9.xlarge' in load_catalogue(), dict(as_of()), dict(as_of('eu-west-1'))]))"
    )
    pools, on_demand, spot, unpriced, home, away = elsewhere(tmp_path, program)
    assert pools == ["us-east-1a", "us-east-1b"]
    assert (on_demand, spot) == (0.1, 0.1), "an unknown spot price is assumed high"
    assert not unpriced
    assert (home["offered"], away["offered"]) == ("2026-11-21", as_of()["offered"])


def test_a_type_that_the_owner_adds_overrides_the_list_of_zones(tmp_path: Path) -> None:
    offers = shipped("offered.json")
    offers["zones"] = {"us-east-1": {"us-east-1c": ["c5.large"]}}
    (tmp_path / "offered.json").write_text(text_of("offered.json", offers))
    program = (
        "import json; from argosy.settings.settings import load_settings;"
        "settings = load_settings({'offered': {'us-east-1': {'add': ['c5.large']}}});"
        "print(json.dumps([zone for name, zone in settings.pools('us-east-1') if name == 'c5.large']))"
    )
    assert elsewhere(tmp_path, program) == ["us-east-1a", "us-east-1b", "us-east-1c"]


def test_the_shipped_catalogue_treats_all_zones_alike() -> None:
    assert "zones" not in shipped("offered.json")
    assert len(load_catalogue()) == len(shipped("instance_types.json")["types"])
