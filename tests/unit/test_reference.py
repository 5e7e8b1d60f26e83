"""The reference pages say what the code says."""

from __future__ import annotations

import json

import pytest

from argosy.gangs import rendezvous
from argosy.model.run_terms import GangTerms
from argosy.settings.settings import Settings
from tests import reference, settings_reference


@pytest.mark.parametrize("name", ["spec.md", "commands.md", "api.md", "variables.md", "settings.md"])
def test_a_reference_page_is_as_the_code_has_it(name: str) -> None:
    written = (reference.FOLDER / name).read_text(encoding="utf-8")
    assert written == reference.pages()[name], "`make reference` writes it again"


def test_every_variable_of_tasks_is_explained_and_no_other() -> None:
    assert reference.variables_told() == {*reference.OF_TASKS}
    assert {*rendezvous.longest(GangTerms(2, 600.0, per_gpu=False), 0)} == {*reference.OF_GANGS}


def test_every_setting_is_explained_and_no_other() -> None:
    assert {*settings_reference.MEANINGS} == {*json.loads(Settings().model_dump_json(by_alias=True))}


def test_every_substitution_is_explained_and_no_other() -> None:
    assert {*reference.SUBSTITUTIONS} == {*reference.VARIABLES}
