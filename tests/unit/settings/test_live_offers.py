"""EC2's list of offers decides which pools a deployment has; the catalogue's list is only what is known without it."""

from __future__ import annotations

import boto3
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto import mock_aws

from argosy.catalogue.lookup import load_catalogue, offered
from argosy.settings.live_offers import LiveOffers, with_live_offers
from argosy.settings.settings import MAX_JSON_BYTES, Settings, load_settings

HOME = "us-east-1"
TYPES = ("c5.large", "p3dn.24xlarge", "g5.xlarge", "p3.2xlarge")
NAMED = {"instanceTypes": {"cpu": ["c5.large"], "gpu": list(TYPES[1:])}}


def live(**zones: str) -> LiveOffers:
    """Zone letter -> the types that it offers, separated by spaces."""
    return LiveOffers(
        frozenset(TYPES), {f"{HOME}{letter}": frozenset(names.split()) for letter, names in zones.items()}
    )


def changed(found: LiveOffers, **context: object) -> Settings:
    return load_settings({**NAMED, **context}, lambda settings: with_live_offers(settings, {HOME: found}))


def test_a_type_that_ec2_withdrew_since_the_checkout_has_no_pool() -> None:
    """The class: a live fact is read and thrown away. The catalogue still says that the Region offers p3dn."""
    assert "p3dn.24xlarge" in offered(HOME)
    settings = changed(live(a="c5.large g5.xlarge", b="c5.large g5.xlarge", c="c5.large"))
    assert settings.pools(HOME) == (
        *(("c5.large", f"{HOME}{zone}") for zone in "abc"),
        *(("g5.xlarge", f"{HOME}{zone}") for zone in "ab"),
    )


def test_a_type_that_the_catalogue_does_not_know_to_be_offered_has_pools_where_ec2_offers_it() -> None:
    assert "p3.2xlarge" not in offered(HOME)
    settings = changed(live(a="c5.large", b="c5.large p3.2xlarge", c=""))
    assert settings.pools(HOME) == (
        ("c5.large", "us-east-1a"),
        ("c5.large", "us-east-1b"),
        ("p3.2xlarge", "us-east-1b"),
    )


def test_the_owners_corrections_stand_above_ec2s_list() -> None:
    own = {"offered": {HOME: {"add": ["p3.2xlarge"], "remove": ["g5.xlarge"]}}}
    settings = changed(live(a="c5.large g5.xlarge", b="", c=""), **own)
    assert settings.pools(HOME) == (
        ("c5.large", "us-east-1a"),
        *(("p3.2xlarge", f"{HOME}{zone}") for zone in "abc"),
    )
    assert settings.offered[HOME].add == ("p3.2xlarge",)


def test_zones_that_the_account_lacks_are_replaced_only_where_they_were_guessed() -> None:
    everything = " ".join(TYPES)
    found = live(a=everything, b=everything, d=everything, e=everything)
    assert changed(found).zones_of(HOME) == ("us-east-1a", "us-east-1b", "us-east-1d")
    assert changed(live(a="c5.large", b="", c="", d="")).zones == {}, "a guess that is right stays as it was deployed"
    own = {"zones": {HOME: ["us-east-1c"]}}
    assert changed(live(a="", c="c5.large"), **own).zones_of(HOME) == ("us-east-1c",)
    vpc = {"vpcs": {HOME: {"vpcId": "vpc-12345678", "subnets": {"us-east-1f": "subnet-12345678"}}}}
    assert changed(live(a="c5.large", f="c5.large"), **vpc).zones_of(HOME) == ("us-east-1f",)


def test_what_ec2_was_not_asked_about_stays_as_the_catalogue_has_it() -> None:
    settings = load_settings(
        {"instanceTypes": {"cpu": ["c5.large", "c6i.large"], "gpu": []}},
        lambda found: with_live_offers(found, {HOME: live(a="", b="", c="")}),
    )
    assert {name for name, _ in settings.pools(HOME)} == {"c6i.large"}


def test_the_functions_get_the_same_pools_as_the_template() -> None:
    settings = changed(live(a="c5.large g5.xlarge", b="c5.large p3.2xlarge", c=""))
    assert Settings.from_json(settings.to_json()).pools(HOME) == settings.pools(HOME)


def test_a_list_too_long_for_a_functions_environment_is_shortened_to_whole_regions() -> None:
    regions = (
        "us-east-1",
        "us-east-2",
        "us-west-2",
        "eu-west-1",
        "eu-west-2",
        "eu-central-1",
        "ap-south-1",
        "eu-north-1",
    )
    asked = Settings().instance_types.all
    everywhere = {
        region: LiveOffers(
            frozenset(asked),
            {
                f"{region}{zone}": frozenset(n for i, n in enumerate(asked) if i % 3 != at)
                for at, zone in enumerate("abc")
            },
        )
        for region in regions
    }
    settings = load_settings({"cells": regions}, lambda found: with_live_offers(found, everywhere))
    assert len(settings.to_json()) <= MAX_JSON_BYTES
    for region in regions:
        assert settings.offers(region) & set(asked) == set(asked)


@given(
    st.sets(st.sampled_from(TYPES)), st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sets(st.sampled_from(TYPES)))
)
def test_what_is_kept_between_two_commands_is_what_was_read(asked: set[str], zones: dict[str, set[str]]) -> None:
    found = LiveOffers(frozenset(asked), {f"{HOME}{zone}": frozenset(names & asked) for zone, names in zones.items()})
    assert LiveOffers.from_json(found.to_json()) == found


@pytest.mark.slow
@mock_aws
@pytest.mark.parametrize("region", ["us-east-1", "us-east-2", "us-west-2", "eu-central-1", "ap-northeast-1"])
def test_a_new_account_can_buy_gpus_in_a_region_of_today(region: str) -> None:
    """Without a word in the settings. L4, L40S and newer are what today's libraries are built for."""
    settings, catalogue = Settings(cells=(region,)), load_catalogue()
    found = LiveOffers.read(boto3.client("ec2", region_name=region), settings.instance_types.all)
    pools = with_live_offers(settings, {region: found}).pools(region)
    models = {(catalogue[name].gpu_model, catalogue[name].gpus) for name, _ in pools}
    assert {("A10G", 1), ("L4", 1), ("L40S", 1), ("L40S", 4), ("A10G", 8)} <= models
    assert {"c5.large", "c7i.large", "c8i.large", "m8i.xlarge"} <= {name for name, _ in pools}
    assert not any(name.startswith(("p3.", "g4ad", "g3")) for name, _ in pools)


@mock_aws
def test_moto_s_copy_of_ec2s_offers_is_read() -> None:
    """Recorded by others from a live account: p3.2xlarge is offered nowhere, p3dn.24xlarge in some zones."""
    found = LiveOffers.read(boto3.client("ec2", region_name=HOME), TYPES)
    assert found.offered == {"c5.large", "p3dn.24xlarge", "g5.xlarge"}
    assert f"{HOME}a" in found.by_zone
    assert any("p3dn.24xlarge" not in names for names in found.by_zone.values())
    settings = with_live_offers(Settings.model_validate(NAMED), {HOME: found})
    pools = settings.pools(HOME)
    assert {name for name, _ in pools} == found.offered
    assert all(name in found.by_zone[zone] for name, zone in pools)
