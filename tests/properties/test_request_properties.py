"""No request breaks the api, and no accepted request breaks a later answer or a tick."""

from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from argosy.api.actions import REQUESTS
from tests.fuzz.accepted_requests import Requests, requests
from tests.fuzz.changed_documents import change_once
from tests.fuzz.targets import WORDS

CASES = requests()
ANSWERED = Requests(50)


def test_every_action_has_a_request_to_begin_with() -> None:
    assert {case["action"] for case in CASES if "action" in case} == set(REQUESTS)


@given(st.lists(st.integers(0, len(CASES) - 1), min_size=1, max_size=5), st.integers(0, 3), st.integers())
def test_any_request_is_answered_or_refused_and_after_an_accepted_one_every_read_answers(
    numbers: list[int], changes: int, seed: int
) -> None:
    chance = random.Random(seed)
    for number in numbers:
        document = json.loads(json.dumps(CASES[number]))
        for _ in range(changes):
            change_once(document, WORDS, chance)
        try:
            data = json.dumps(document).encode()
        except RecursionError:
            continue
        ANSWERED(data)
