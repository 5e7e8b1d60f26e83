"""The owner's settings: every fault at once with its path, and an unchanged value after the way through the
environment."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.api.admission.specs import limits_of
from argosy.catalogue.lookup import load_catalogue, offered
from argosy.settings.settings import MAX_JSON_BYTES, Settings, SettingsError, load_settings
from argosy.settings.values import ALL_IMAGES


def faults_of(context: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SettingsError) as caught:
        load_settings(context)
    return dict(caught.value.faults)


def test_without_any_setting_there_is_a_deployment_in_three_zones_that_names_c5_and_p3() -> None:
    settings = load_settings({})
    assert settings == Settings()
    assert (settings.prefix, settings.region) == ("argosy", "us-east-1")
    assert settings.zones_of("us-east-1") == ("us-east-1a", "us-east-1b", "us-east-1c")
    assert {"c5.large", "c5.9xlarge"} <= set(settings.instance_types.cpu)
    assert {"p3.2xlarge", "p3.8xlarge", "p3.16xlarge", "p3dn.24xlarge"} <= set(settings.instance_types.gpu)


def test_every_default_type_is_in_the_catalogue_on_its_side() -> None:
    catalogue, types = load_catalogue(), Settings().instance_types
    assert all(catalogue[name].gpus == 0 for name in types.cpu)
    assert all(catalogue[name].gpus > 0 for name in types.gpu)


def test_another_stage_has_its_own_prefix() -> None:
    assert load_settings({"stage": "dev"}).prefix == "argosy-dev"


def test_all_faults_are_reported_at_once_with_their_paths() -> None:
    faults = faults_of(
        {
            "stage": "Main!",
            "lingerS": 3,
            "instanceTypes": {"cpu": ["c5.huge", "p3.2xlarge"], "gpu": ["c5.large"]},
            "zones": {"us-west-2": ["us-east-1a"]},
            "logRetentionDays": 2,
            "checkpointDays": 1,
            "outputBuckets": ["bucket-a", "bucket-a"],
            "inputBuckets": ["Not_A_Bucket"],
            "maxInstances": "many",
            "subnets": "isolated",
            "diskGiB": {"c5.*": 8},
            "volumeInitializationMibps": {"c5.*": 99, "g5.*": 301, "m5.*": 100, "r5.*": 300},
            "maxTasksPerInstance": {"c5.*": 0, "m5.*": 1_024},
            "attributes": {"c5.*": {"ecs.instance-type": "x"}, "g5.*": {"team": " vision"}},
            "amis": {"us-east-1": {"gpu": "latest"}},
        }
    )
    assert set(faults) == {
        "stage",
        "lingerS",
        "instanceTypes.cpu[0]",
        "instanceTypes.cpu[1]",
        "instanceTypes.gpu[0]",
        "zones.us-west-2",
        "logRetentionDays",
        "checkpointDays",
        "outputBuckets",
        "inputBuckets[0]",
        "maxInstances",
        "subnets",
        "diskGiB.c5.*",
        "volumeInitializationMibps.c5.*",
        "volumeInitializationMibps.g5.*",
        "maxTasksPerInstance.c5.*",
        "maxTasksPerInstance.m5.*",
        "attributes.c5.*.ecs.instance-type.[key]",
        "attributes.g5.*.team",
        "amis.us-east-1.gpu",
    }
    assert faults["lingerS"] == "is not a setting"
    assert "c5.huge" in faults["instanceTypes.cpu[0]"]
    assert "GPUs" in faults["instanceTypes.cpu[1]"]
    assert [load_settings({"checkpointDays": days}).checkpoint_days for days in (0, 7)] == [0, 7]


def test_the_message_of_the_error_holds_every_fault() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings({"stage": "", "nonsense": 1})
    assert "2 faults" in str(caught.value)
    assert all(f"{path}: {sentence}" in str(caught.value) for path, sentence in caught.value.faults)


def test_a_fault_in_the_cells_does_not_bring_up_faults_in_what_is_keyed_by_them() -> None:
    assert set(faults_of({"cells": ["nowhere"], "zones": {"eu-west-1": ["eu-west-1a"]}})) == {"cells[0]"}


def test_fitness_functions_are_named_as_module_and_function() -> None:
    assert load_settings({"fitnessFunctions": "ours.scores:warm"}).fitness_functions == ("ours.scores:warm",)
    assert set(faults_of({"fitnessFunctions": ["os", "a b:c", "a:b.c", "binpack:f", "x" * 200 + ":f", "a:b"]})) == {
        f"fitnessFunctions[{number}]" for number in range(5)
    }
    assert "has an entry twice" in faults_of({"fitnessFunctions": ["a:b", "a:b"]})["fitnessFunctions"]
    assert "fitnessFunctions" in faults_of({"fitnessFunctions": [f"a:f{number}" for number in range(21)]})


def test_a_region_without_a_usable_type_is_refused_and_can_be_corrected() -> None:
    only_p3 = {"instanceTypes": {"cpu": [], "gpu": ["p3.2xlarge"]}}
    assert "offered.us-east-1.add" in faults_of(only_p3)["instanceTypes"]
    settings = load_settings({**only_p3, "offered": {"us-east-1": {"add": ["p3.2xlarge"]}}})
    assert settings.pools("us-east-1")[0] == ("p3.2xlarge", "us-east-1a")


def test_more_types_than_a_stack_can_hold_are_refused_with_the_number_that_it_can() -> None:
    cpu = [name for name, each in load_catalogue().items() if not each.gpus][:70]
    gpu = [name for name, each in load_catalogue().items() if each.gpus][:9]
    zones = {"us-east-1": ["us-east-1a", "us-east-1b"]}
    assert "at most 66 types" in faults_of({"instanceTypes": {"cpu": cpu[:60], "gpu": gpu}})["instanceTypes"]
    assert load_settings({"instanceTypes": {"cpu": cpu[:60], "gpu": gpu[:6]}})
    assert load_settings({"instanceTypes": {"cpu": cpu[:60], "gpu": gpu}, "zones": zones})


def test_settings_that_would_not_fit_into_a_functions_environment_are_refused() -> None:
    many = [f"bucket-{'x' * 40}-{number}" for number in range(60)]
    assert str(MAX_JSON_BYTES) in faults_of({"outputBuckets": many})["(all)"]


def test_what_is_offered_follows_the_owners_changes() -> None:
    changed = load_settings({"offered": {"us-east-1": {"add": ["p3.2xlarge"], "remove": ["c5.large"]}}})
    assert changed.offers("us-east-1") == offered("us-east-1") - {"c5.large"} | {"p3.2xlarge"}
    assert not [pool for pool in changed.pools("us-east-1") if pool[0] == "c5.large"]


def test_the_command_lines_strings_do() -> None:
    settings = load_settings({"cells": "us-east-1, eu-west-1", "lingerSeconds": "60", "images": "true"})
    assert (settings.cells, settings.linger_s, settings.images) == (("us-east-1", "eu-west-1"), 60, ALL_IMAGES)


def test_defaults_take_no_room_in_the_environment() -> None:
    assert Settings().to_json() == "{}"


@given(
    stage=st.from_regex(r"\A[a-z][a-z0-9-]{0,15}\Z"),
    linger_s=st.integers(0, 86_400),
    cells=st.lists(st.sampled_from(["us-east-1", "us-west-2", "eu-west-1"]), min_size=1, unique=True),
    results=st.sampled_from(["retain", "destroy"]),
    email=st.none() | st.just("ops@example.com"),
)
def test_settings_survive_the_environment(
    stage: str, linger_s: int, cells: list[str], results: str, email: str
) -> None:
    settings = load_settings(
        {
            "stage": stage,
            "lingerSeconds": linger_s,
            "cells": cells,
            "results": results,
            "alarmEmail": email,
            "maxTasksPerInstance": {"c5.*": 1 + linger_s % 1_023},
        }
    )
    assert Settings.from_json(settings.to_json()) == settings


def test_instances_of_private_subnets_have_no_public_address() -> None:
    assert Settings().policy().public_addresses
    assert not Settings(subnets="private").policy().public_addresses


def test_price_caps_become_the_policys_and_only_those_that_are_set() -> None:
    settings = load_settings({"priceCaps": {"perVcpuHour": 0.02, "perGpuHour": 1}})
    assert settings.price_caps.to_policy() == {"max_usd_per_vcpu_hour": 0.02, "max_usd_per_gpu_hour": 1.0}
    assert Settings.from_json(settings.to_json()) == settings
    assert Settings().price_caps.to_policy() == {}


def test_price_caps_that_allow_nothing_are_refused_each_with_its_path() -> None:
    caps = {"perInstanceHour": 0, "perVcpuHour": -1, "perGpuHour": "cheap", "perHour": 1}
    assert set(faults_of({"priceCaps": caps})) == {
        "priceCaps.perInstanceHour",
        "priceCaps.perVcpuHour",
        "priceCaps.perGpuHour",
        "priceCaps.perHour",
    }


def test_placement_scores_are_asked_for_only_where_the_owner_says_so() -> None:
    assert not Settings().placement_scores
    assert load_settings({"placementScores": True}).placement_scores


def test_sessions_name_owners_only_of_roles_that_the_owner_lists() -> None:
    assert limits_of(Settings(), "b").session_owners == ()
    assert limits_of(load_settings({"sessionOwners": ["Okta-*", "saml"]}), "b").session_owners == ("Okta-*", "saml")
    with pytest.raises(SettingsError, match="sessionOwners"):
        load_settings({"sessionOwners": ["a role"]})


def test_what_is_kept_back_for_stopping_a_run_covers_the_stop_time_out() -> None:
    assert Settings(stop_timeout_s=110).policy().wind_down_s > 110


def test_the_volume_of_a_type_is_the_first_that_its_owner_names_else_the_default_of_its_kind() -> None:
    policy = load_settings({"diskGiB": {"c5.9*": 400, "c5.*": 100, "g5.*": 300}}).policy()
    sizes = {
        name: policy.disk_gib_of(load_catalogue()[name])
        for name in ("c5.9xlarge", "c5.large", "m5.large", "g5.xlarge", "p3.2xlarge")
    }
    assert sizes == {"c5.9xlarge": 400, "c5.large": 100, "m5.large": 60, "g5.xlarge": 300, "p3.2xlarge": 150}


def test_an_instance_runs_as_many_tasks_as_the_first_glob_of_its_type_says_else_as_a_bridge_takes() -> None:
    policy = load_settings({"maxTasksPerInstance": {"c5.9*": 40, "c5.*": 10}}).policy()
    assert [policy.most_tasks_of(name) for name in ("c5.9xlarge", "c5.large", "m5.large")] == [40, 10, 1_023]


def test_a_type_has_the_attributes_of_every_glob_that_matches_and_of_equal_names_the_first() -> None:
    given = {"g5.xlarge": {"team": "vision"}, "g*": {"team": "all", "tier": "a 1"}, "c5.*": {"tier": "b"}}
    policy = load_settings({"attributes": given}).policy()
    assert policy.own_attributes_of("g5.xlarge") == {"team": "vision", "tier": "a 1"}
    assert policy.own_attributes_of("g4dn.xlarge") == {"team": "all", "tier": "a 1"}
    assert policy.own_attributes_of("m5.large") == {}


def test_every_instance_is_expected_to_have_the_runner_whatever_its_owner_names() -> None:
    policy = load_settings({"attributes": {"g5.*": {"team": "vision"}}}).policy()
    assert policy.attributes_of("g5.xlarge") == {"team": "vision", "argosy.runner": "1"}
    assert policy.attributes_of("m5.large") == {"argosy.runner": "1"}


def test_private_subnets_are_for_one_cell() -> None:
    assert "use nat" in faults_of({"subnets": "private", "cells": ["us-east-1", "eu-west-1"]})["subnets"]
    assert load_settings({"subnets": "nat", "cells": ["us-east-1", "eu-west-1"]})
    assert load_settings({"subnets": "private"})


def test_an_existing_vpc_names_the_zones_of_its_cell() -> None:
    vpc = {"vpcId": "vpc-0123456789abcdef0", "subnets": {"us-east-1b": "subnet-0123456789abcdef0"}}
    assert load_settings({"vpcs": {"us-east-1": vpc}}).zones_of("us-east-1") == ("us-east-1b",)
    found = faults_of({"vpcs": {"us-east-1": {**vpc, "vpcId": "vpc-1"}, "eu-west-1": {**vpc, "subnets": {}}}})
    assert set(found) == {"vpcs.us-east-1.vpcId", "vpcs.eu-west-1.subnets"}
    found = faults_of({"vpcs": {"us-east-1": vpc, "eu-west-1": vpc}, "zones": {"us-east-1": ["us-east-1a"]}})
    assert set(found) == {"vpcs.eu-west-1", "vpcs.eu-west-1.subnets", "zones.us-east-1"}


GROUP = "arn:aws:elasticloadbalancing:us-east-1:123456789012:targetgroup/web/0123456789abcdef"


def test_target_groups_are_named_and_travel_to_the_functions() -> None:
    settings = load_settings({"targetGroups": {"web": GROUP}})
    assert Settings.from_json(settings.to_json()).target_groups == {"web": GROUP}


@pytest.mark.parametrize(
    ("groups", "fault"),
    [
        ({"web": "arn:aws:s3:::web"}, "targetGroups.web"),
        ({"Web!": GROUP}, "targetGroups.Web!"),
        ({f"web{number}": GROUP for number in range(11)}, "targetGroups"),
        ({"web": GROUP.replace("us-east-1", "eu-west-1")}, "targetGroups.web: is in none of the cells (us-east-1)"),
    ],
)
def test_a_target_group_that_cannot_be_used_is_refused(groups: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        load_settings({"targetGroups": groups})
    assert fault in str(refusal.value)
