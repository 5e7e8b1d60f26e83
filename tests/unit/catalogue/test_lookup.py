"""The shipped instance types: sizes, prices and where they are offered agree with each other and with AWS's pages."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from importlib.resources import files

import pytest

from argosy.catalogue.lookup import (
    CPU_UNITS_PER_VCPU,
    ECS_RESERVED_MEMORY_MIB,
    as_of,
    load_catalogue,
    offered,
    registered_memory_mib,
)

ARM_FAMILIES = {"c6g", "c7g", "m6g", "m7g", "r6g", "r7g", "c8g", "m8g", "g5g"}
WITHDRAWN = {"p3.2xlarge", "p3.8xlarge", "p3.16xlarge"}


@pytest.mark.parametrize(
    ("name", "vcpus", "gib", "gpus"),
    [
        ("c5.large", 2, 4, 0),
        ("c5.18xlarge", 72, 144, 0),
        ("p3.2xlarge", 8, 61, 1),
        ("p3.8xlarge", 32, 244, 4),
        ("p3.16xlarge", 64, 488, 8),
        ("p3dn.24xlarge", 96, 768, 8),
        ("g5.48xlarge", 192, 768, 8),
    ],
)
def test_sizes_are_those_of_aws(name: str, vcpus: int, gib: int, gpus: int) -> None:
    found = load_catalogue()[name]
    assert (found.vcpus, found.memory_mib, found.gpus) == (vcpus, gib * 1024, gpus)
    assert found.cpu_units == vcpus * CPU_UNITS_PER_VCPU


def test_every_type_is_plausible() -> None:
    for found in load_catalogue().values():
        assert 0 < found.typical_spot_usd_per_hour <= found.on_demand_usd_per_hour, found
        assert 0.8 * found.memory_mib < found.registered_memory_mib < found.memory_mib - ECS_RESERVED_MEMORY_MIB
        assert (found.gpus > 0) == (found.gpu_model is not None) == (found.gpu_memory_mib > 0)
        assert found.architecture == ("arm64" if found.family in ARM_FAMILIES else "x86_64")
        assert "metal" not in found.name


def test_a_gpu_can_be_shared_up_to_what_its_driver_leaves_and_neither_a_vgpu_slice_nor_a_v100_can() -> None:
    catalogue = load_catalogue()
    shared = {
        name: catalogue[name].shared_gpu_mib for name in ("g4dn.xlarge", "p5en.48xlarge", "c5.large", "p3.2xlarge")
    }
    assert shared == {
        "g4dn.xlarge": 15_360,
        "p5en.48xlarge": 135_360,
        "c5.large": 0,
        "p3.2xlarge": 0,
    }  # of 16,384 and 144,384
    assert catalogue["g6f.xlarge"].shared_gpu_mib == 0


def test_registered_memory_stays_below_what_aws_measured_on_an_m4_large() -> None:
    """7,985 of 8,192 MiB, nothing reserved:
    https://docs.aws.amazon.com/batch/latest/userguide/memory-management.html."""
    assert registered_memory_mib(8192) <= 7985 - ECS_RESERVED_MEMORY_MIB


def test_a_larger_type_of_a_cpu_family_costs_more() -> None:
    for family in ("c5", "c6i", "c7i", "m5", "r6i"):
        prices = [each.on_demand_usd_per_hour for each in load_catalogue().values() if each.family == family]
        assert len(prices) >= 8
        assert prices == sorted(prices)


def test_another_region_has_its_own_prices_and_the_same_types() -> None:
    home, tokyo = load_catalogue(), load_catalogue("ap-northeast-1")
    assert home.keys() == tokyo.keys()
    assert tokyo["c5.large"].on_demand_usd_per_hour > home["c5.large"].on_demand_usd_per_hour
    assert tokyo["g6e.xlarge"] == home["g6e.xlarge"]  # unknown there: home's price is used


@pytest.mark.parametrize("region", ["us-east-1", "us-east-2", "us-west-2"])
def test_withdrawn_p3_types_are_in_the_catalogue_but_offered_nowhere(region: str) -> None:
    assert load_catalogue().keys() >= WITHDRAWN
    assert not WITHDRAWN & offered(region)
    assert {"c5.large", "g4dn.xlarge", "g5.48xlarge"} <= offered(region) <= load_catalogue().keys()


def test_p3dn_is_still_offered() -> None:
    assert "p3dn.24xlarge" in offered("us-east-1")
    assert "p3dn.24xlarge" in offered("us-west-2")


def test_an_unknown_region_offers_nothing_that_we_know_of() -> None:
    assert offered("xx-nowhere-1") == frozenset()


def test_the_catalogue_cannot_be_changed_by_its_readers() -> None:
    with pytest.raises(TypeError):
        load_catalogue()["c5.large"] = None  # type: ignore[index]


def test_each_file_names_its_date() -> None:
    assert all(len(date) == len("2026-07-20") for date in as_of().values())


def test_the_catalogue_needs_the_standard_library_only() -> None:
    program = (
        "import sys; from argosy.catalogue.lookup import load_catalogue; load_catalogue();"
        "print([name for name in ('numpy', 'pydantic', 'boto3') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_gpus_of_every_type_are_those_that_ec2_describes() -> None:
    """By moto's copy of DescribeInstanceTypes, which names the memory of one GPU."""
    packed = (files("moto.ec2") / "resources" / "instance_types.json.gz").read_bytes()
    described = json.loads(gzip.decompress(packed))
    shown = {
        name: [
            (gpu["Count"] or gpu["LogicalGpuCount"], gpu["Name"], gpu["MemoryInfo"]["SizeInMiB"])
            for gpu in found["GpuInfo"]["Gpus"]
        ]
        for name, found in described.items()
        if "GpuInfo" in found
    }
    ours = {name: [(each.gpus, each.gpu_model, each.gpu_memory_mib)] for name, each in load_catalogue().items()}
    of_today = {name for name in shown if name.startswith(("g4dn", "g5", "g6", "g7", "gr6", "p4", "p5", "p6"))}
    left_out = {name for name in of_today - ours.keys() if not name.endswith(".metal")}
    assert {name.split(".")[0] for name in left_out} == {"p5e"}
    assert {name: ours[name] for name in of_today & ours.keys()} == {
        name: shown[name] for name in of_today & ours.keys()
    }
    sizes = {name: described[name]["GpuInfo"]["Gpus"][0].get("GpuPartitionSize", 1) for name in of_today & ours.keys()}
    parts = {name: f"{size:g}" for name, size in sizes.items() if size < 1}
    assert len(parts) == 5
    assert parts == {name: kind.gpu_part for name, kind in load_catalogue().items() if kind.gpu_part}
