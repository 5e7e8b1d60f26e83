"""`catalogue`: Argosy's data on instance types, and its refresh from AWS."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError

from argosy.catalogue.files import shipped_folder
from argosy.catalogue.lookup import load_catalogue
from argosy.cli.cluster.catalogue.changes import REFRESHED
from tests.fakes.cli import NOW, Pages, World, golden

ZONES = ("us-east-1a", "us-east-1b")
BAND = "<5%"  # of c5.large in eu-west-1


def type_view(name: str, **changes: Any) -> dict[str, Any]:
    kind = load_catalogue().get(name)
    gpus = []
    if kind and kind.gpus:
        memory = {"SizeInMiB": kind.gpu_memory_mib}
        gpus = [{"Name": kind.gpu_model, "Manufacturer": "NVIDIA", "Count": kind.gpus, "MemoryInfo": memory}]
    return {
        "InstanceType": name,
        "BareMetal": False,
        "ProcessorInfo": {"SupportedArchitectures": [kind.architecture if kind else "x86_64"]},
        "VCpuInfo": {"DefaultVCpus": kind.vcpus if kind else 2},
        "MemoryInfo": {"SizeInMiB": kind.memory_mib if kind else 4096},
        **({"GpuInfo": {"Gpus": gpus}} if gpus else {}),
        **changes,
    }


def product(name: str, *prices: str, unit: str = "Hrs", **attributes: str) -> str:
    dimensions = {str(n): {"unit": unit, "pricePerUnit": {"USD": price}} for n, price in enumerate(prices)}
    terms = {"OnDemand": {"term": {"priceDimensions": dimensions}}}
    return json.dumps({"product": {"attributes": {"instanceType": name, **attributes}}, "terms": terms})


class Ec2:
    """Every type of the catalogue in two zones, at the figures that are known, unless a test says otherwise."""

    def __init__(self, *more: dict[str, Any]) -> None:
        offered = json.loads((shipped_folder() / "offered.json").read_text())["regions"]["us-east-1"]
        self.views = {name: type_view(name) for name in load_catalogue() if name in offered}
        self.views |= {view["InstanceType"]: view for view in more}
        self.lacking: set[tuple[str, str]] = set()
        shipped = json.loads((shipped_folder() / "prices.json").read_text())["regions"]["us-east-1"]
        self.spot = {name: [spot] for name, (_, spot) in shipped.items() if spot}

    def get_paginator(self, operation: str) -> Pages:
        answers: dict[str, Callable[..., list[dict[str, Any]]]] = {
            "describe_instance_types": self._types,
            "describe_spot_price_history": self._prices,
        }
        return Pages(answers[operation])

    def describe_availability_zones(self, **request: Any) -> dict[str, Any]:
        return {"AvailabilityZones": [{"ZoneName": zone} for zone in ZONES]}

    def _named(self, filters: Any) -> list[str]:
        (only,) = filters
        assert only["Name"] == "instance-type"
        assert len(only["Values"]) <= 200
        return [name for name in self.views if any(fnmatchcase(name, value) for value in only["Values"])]

    def _types(self, Filters: Any) -> list[dict[str, Any]]:  # noqa: N803
        return [{"InstanceTypes": [self.views[name] for name in self._named(Filters)]}]

    def describe_instance_type_offerings(self, LocationType: str, Filters: Any) -> dict[str, Any]:  # noqa: N803
        assert LocationType == "availability-zone"
        rows = [
            {"InstanceType": name, "Location": zone}
            for name in self._named(Filters)
            for zone in (*ZONES, "us-east-1-wl1-bos-wlz-1")  # a zone of another kind
            if (name, zone) not in self.lacking
        ]
        return {"InstanceTypeOfferings": rows}

    def _prices(self, **request: Any) -> list[dict[str, Any]]:
        moment = datetime.fromtimestamp(NOW - 60, UTC)
        rows = [
            {"InstanceType": name, "AvailabilityZone": f"z{n}", "SpotPrice": str(price), "Timestamp": moment}
            for name in request["InstanceTypes"]
            for n, price in enumerate(self.spot.get(name, []))
        ]
        return [{"SpotPriceHistory": rows}]


class PriceList:
    def __init__(self, *products: str) -> None:
        self.products = [
            *(product(name, str(kind.on_demand_usd_per_hour)) for name, kind in load_catalogue().items()),
            *products,
        ]
        self.filters: list[dict[str, str]] = []
        self.more = {  # usage types as AWS's price list has them
            "AmazonEC2": [product("", "0.08", unit="GB-Mo", usagetype="EBS:VolumeUsage.gp3")],
            "AmazonVPC": [
                product("", "0.005", usagetype="USE1-PublicIPv4:InUseAddress"),
                product("", "0.007", usagetype="USE1-PublicIPv4:IdleAddress"),
            ],
            "AmazonCloudWatch": [
                product("", "0", "0.5", unit="GB", usagetype="USE1-DataProcessing-Bytes"),
                product("", "0.25", unit="GB", usagetype="USE1-DataProcessingIA-Bytes"),
                product("", "9", unit="GB", usagetype="USE1-VendedLog-Bytes"),
            ],
        }

    def get_paginator(self, operation: str) -> Pages:
        assert operation == "get_products"
        return Pages(self._products)

    def _products(self, ServiceCode: str, Filters: list[dict[str, str]]) -> list[dict[str, Any]]:  # noqa: N803
        asked = {each["Field"]: each["Value"] for each in Filters}
        if ServiceCode != "AmazonEC2" or "volumeApiName" in asked:
            assert asked["regionCode"]
            return [{"PriceList": self.more[ServiceCode]}]
        self.filters = Filters
        return [{"PriceList": self.products[:50]}, {"PriceList": self.products[50:]}]


def world(*more: dict[str, Any], products: tuple[str, ...] = ()) -> tuple[World, Ec2, PriceList]:
    ec2, prices = Ec2(*more), PriceList(*products)
    return World(others={"ec2": ec2, "pricing": prices}), ec2, prices


def test_the_list_shows_what_a_type_holds_and_costs() -> None:
    result = World().argosy("catalogue", "--type", "g4dn.*")
    assert result.exit_code == 0, result.output
    golden("catalogue", result.stdout)


def test_the_list_in_json_has_the_registered_memory_and_the_dates() -> None:
    document = World().document("catalogue", "--type", "c5.large", "--region", "eu-west-1")
    (row,) = document["instanceTypes"]
    assert row["registeredMemoryMib"] < row["memoryMib"] == 4096
    assert (row["interruptionBand"], row["offered"]) == (BAND, "yes")
    assert set(document["asOf"]) == {"instance_types", "prices", "offered", "interruption_bands", "overheads"}


def test_an_unknown_type_is_named() -> None:
    result = World().argosy("catalogue", "--type", "z9.*")
    assert result.exit_code == 2
    assert "'z9.*'" in result.stderr
    assert "known families: c5, " in result.stderr


def test_without_credentials_a_refresh_says_so_in_one_sentence() -> None:
    class Nobody:
        def get_paginator(self, operation: str) -> Any:
            raise NoCredentialsError

    result = World(others={"ec2": Nobody()}).argosy("catalogue", "refresh")
    assert result.exit_code == 3
    assert result.stderr.startswith("error: No AWS credentials were found.\n")


def test_a_refresh_that_finds_nothing_new_changes_the_dates_only(tmp_path: Path) -> None:
    here, _, prices = world()
    result = here.argosy("catalogue", "refresh", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("0 changes in us-east-1\n")
    assert f"written to {tmp_path}" in result.stdout
    for name in REFRESHED:
        written, shipped = (json.loads((folder / name).read_text()) for folder in (tmp_path, shipped_folder()))
        assert written.pop("refreshed") == {"us-east-1": "2026-11-21"}
        assert written.pop("zones", {"us-east-1": {}}) == {"us-east-1": {}}
        assert written == shipped
    asked = {each["Field"]: each["Value"] for each in prices.filters}
    assert asked["regionCode"] == "us-east-1"
    assert (asked["operatingSystem"], asked["tenancy"], asked["capacitystatus"]) == ("Linux", "Shared", "Used")


def test_a_refresh_tells_and_writes_what_is_new(tmp_path: Path) -> None:
    here, ec2, _ = world(
        type_view("c5.large", MemoryInfo={"SizeInMiB": 5000}),
        type_view("c9.large"),
        type_view("c9.xlarge", VCpuInfo={"DefaultVCpus": 4}),
        products=(
            product("c5.large", "0.0800"),
            product("c9.large", "0.1000"),
            product("c9.xlarge", "0.2", unit="Quantity"),
        ),
    )
    ec2.spot |= {"c9.large": [0.03, 0.05, 0.09], "c5.xlarge": [0.0, -1.0]}
    ec2.lacking = {("c5.xlarge", "us-east-1b"), ("c5.2xlarge", "us-east-1a"), ("c5.2xlarge", "us-east-1b")}
    document = here.document("catalogue", "refresh", "--type", "c9.*", "--output", str(tmp_path))
    told = {(row["what"], row["instanceType"]): (row["was"], row["now"]) for row in document["changes"]}
    assert told["size", "c5.large"] == ("2 vCPU, 4,096 MiB", "2 vCPU, 5,000 MiB")
    assert told["new type", "c9.large"] == ("-", "2 vCPU, 4,096 MiB")
    assert told["on-demand $/h", "c9.large"] == ("-", "0.1000")
    assert told["typical spot $/h", "c9.large"] == ("-", "0.0500")
    assert told["offered", "c5.2xlarge"] == ("yes", "no")
    assert told["offered in us-east-1b", "c5.xlarge"] == ("yes", "no")
    assert ("typical spot $/h", "c5.xlarge") not in told  # nothing there was a price: the old one stays
    assert any("p3.2xlarge" in note and "kept unchanged" in note for note in document["notes"])
    assert any("no on-demand price for c9.xlarge" in note for note in document["notes"])
    types = json.loads((tmp_path / "instance_types.json").read_text())["types"]
    assert list(types)[-2:] == ["c9.large", "c9.xlarge"]
    prices = json.loads((tmp_path / "prices.json").read_text())["regions"]["us-east-1"]
    assert prices["c9.large"] == [0.1, 0.05]
    assert "c9.xlarge" not in prices
    offers = json.loads((tmp_path / "offered.json").read_text())
    assert "c5.2xlarge" not in offers["regions"]["us-east-1"]
    assert offers["zones"]["us-east-1"] == {"us-east-1b": ["c5.xlarge"]}


def test_a_refresh_reads_what_disks_addresses_and_logs_cost(tmp_path: Path) -> None:
    here, _, prices = world()
    prices.more["AmazonEC2"] = [
        product("", "0.09", unit="GB-Mo", usagetype="EUW1-EBS:VolumeUsage.gp3"),
        product("", "9", unit="GB-Mo", usagetype="EUW1-EBS:VolumeUsage.gp3x"),
        product("", "9", unit="IOPS-Mo", usagetype="EUW1-EBS:VolumeUsage.gp3"),
    ]
    prices.more["AmazonCloudWatch"] = []
    words = ("catalogue", "refresh", "--region", "eu-west-9,us-east-1", "--output", str(tmp_path))
    document = here.document(*words)
    told = {(row["region"], row["what"]): (row["was"], row["now"]) for row in document["changes"]}
    assert told["us-east-1", "gp3UsdPerGbMonth"] == ("0.0800", "0.0900")
    assert told["eu-west-9", "publicIpv4UsdPerHour"] == ("-", "0.0050")
    assert "us-east-1: the price list has no DataProcessing-Bytes: logsUsdPerGb is kept unchanged" in document["notes"]
    written = json.loads((tmp_path / "overheads.json").read_text())
    assert written["regions"]["eu-west-9"] == {"gp3UsdPerGbMonth": 0.09, "publicIpv4UsdPerHour": 0.005}
    assert written["regions"]["us-east-1"]["logsUsdPerGb"] == 0.5
    assert written["refreshed"].keys() == {"eu-west-9", "us-east-1"}


def test_several_regions_are_refreshed_at_once_and_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    here, _, _ = world()
    folder = tmp_path / "none"
    words = ("catalogue", "refresh", "--region", "us-east-1, eu-west-1", "--output", str(folder), "--dry-run")
    result = here.argosy(*words)
    assert result.exit_code == 0, result.output
    assert " in us-east-1, eu-west-1" in result.stdout
    assert "nothing was written (--dry-run)" in result.stdout
    assert not folder.exists()
    assert {each.region for each in here.connections} == {"us-east-1", "eu-west-1"}


@pytest.mark.parametrize(
    "view",
    [
        type_view("c9.large", ProcessorInfo={"SupportedArchitectures": ["x86_64_mac"]}),
        type_view("c9.metal", BareMetal=True),
        type_view("c9.large", GpuInfo={"Gpus": [{"Manufacturer": "NVIDIA", "Name": "L4", "Count": 0}]}),
        type_view("c9.large", GpuInfo={"Gpus": [{"Manufacturer": "AMD", "Name": "V520", "Count": 1}]}),
        type_view("c9.large", NeuronInfo={"NeuronDevices": [{}]}),
    ],
)
def test_a_type_that_cannot_be_used_is_refused_by_name(view: dict[str, Any], tmp_path: Path) -> None:
    here, _, _ = world(view)
    result = here.argosy("catalogue", "refresh", "--type", "c9.*", "--output", str(tmp_path))
    assert result.exit_code == 2
    assert "no usable instance type that matches 'c9.*'" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_made_up_figures_of_an_aws_on_this_machine_do_not_go_into_the_catalogue(tmp_path: Path) -> None:
    here, _, _ = world()
    url = ("--endpoint-url", "http://127.0.0.1:4566")
    result = here.argosy("catalogue", "refresh", *url)
    assert result.exit_code == 2
    assert "its figures are invented" in result.stderr
    result = here.argosy("catalogue", "refresh", *url, "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert "has no price list" in result.stdout


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    here, _, _ = world()
    (tmp_path / "file").write_text("")
    result = here.argosy("catalogue", "refresh", "--output", str(tmp_path / "file" / "below"))
    assert result.exit_code == 2
    assert "cannot be written to" in result.stderr


def test_a_long_list_of_changes_is_cut_and_says_so(tmp_path: Path) -> None:
    here, ec2, _ = world()
    ec2.spot = {name: [price * 2 for price in prices] for name, prices in ec2.spot.items()}
    result = here.argosy("catalogue", "refresh", "--dry-run")
    assert "--json shows" in result.stdout
