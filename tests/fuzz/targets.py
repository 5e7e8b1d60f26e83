"""The readers of outside text, and the rules for any text.

Each target takes the bytes of one input and returns. An exception out of it is a fault: a refusal is an answer, and a
target lists its refusals. An input that needs more than a few seconds or too much memory is a fault as well, which the
fuzzer itself finds (`tests/fuzz/run.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argosy.aws import sqs
from argosy.lifecycle.apply import apply
from argosy.messages.eventbridge import PoisonMessage, to_event
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.model.stored.run_record import RunRecord
from argosy.placement import query
from argosy.placement.query_tokens import OPERATORS, SUBJECTS
from argosy.placement.supply import InstanceRow, Supply
from argosy.spec.bounds import SIZE_LIMIT
from argosy.spec.faults import SpecError
from argosy.spec.file import check_text
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.shards import task_count
from tests.builders import BUILT, NOW, POLICY, launched, state_with_instance
from tests.fakes.api import SPEC, Desk
from tests.harness.simulation.world.members import Members
from tests.sample_messages import MESSAGES

INPUTS_A_STATE = 500  # then a fresh one: what an input leaves behind must not slow the next ones down
REPLY_LIMIT = 6_000_000  # bytes: Lambda's
STATUS_CODES = {200, 400, 403, 404, 409, 429}
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Target:
    """seeds: inputs to begin with. words: texts that a mutation may insert. documents: whether an input is JSON."""

    one_input: Callable[[bytes], None]
    seeds: tuple[bytes, ...]
    words: tuple[str, ...]
    is_json: bool = True


class Messages:
    """The body of a message in the controller's queue: an event, nothing, or poison; and a state that can be stored."""

    def __init__(self) -> None:
        self.state, self.left = State(epoch="none"), 0

    def __call__(self, data: bytes) -> None:
        try:
            event = to_event(sqs.parse(data.decode(errors="replace")))
        except PoisonMessage:
            return
        if event is None:
            return
        if not self.left:
            self.state, self.left = _busy(), INPUTS_A_STATE
        self.left -= 1
        apply(self.state, event, NOW + 5, POLICY)
        for (partition, key), body in documents.changed(self.state).items():
            assert len(partition.encode()) <= 2_048
            assert len(key.encode()) <= 1_024
            assert len(body) < 200_000
        for run in self.state.runs.values():
            assert len(json.dumps(RunRecord.of(run).to_json(), allow_nan=False)) < 200_000
        documents.committed(self.state)


def _busy() -> State:
    state = state_with_instance(tasks=3)
    launched(state)
    documents.committed(state)
    BUILT.clear()
    return state


FLEET = Supply.of(
    [
        InstanceRow("i-1", 1, 1, 0, 1, 1, 0, attributes={"ecs.instance-type": "c5.large", "color": "green"}),
        InstanceRow(
            "i-2", 1, 1, 0, 1, 1, 0, {}, running_by_group={"database": 2}, running_tasks=2, agent_version="1.14.4"
        ),
        InstanceRow(
            "i-3", 1, 1, 0, 1, 1, 0, {}, started_by=frozenset({"ci"}), registered_at=1.5e9, agent_connected=False
        ),
    ]
)


def expression(data: bytes) -> None:
    """A placement constraint: a query that answers yes or no for each instance, or QuerySyntaxError with a column in
    the text."""
    text = _any_text(data)
    try:
        parsed = query.parse(text)
    except query.QuerySyntaxError as refusal:
        assert 1 <= refusal.column <= max(len(text), query.MAX_EXPRESSION_CHARS) + 1
        str(refusal).encode()
        return
    assert query.matching(parsed, FLEET).shape == (len(FLEET.ids),)


def _any_text(data: bytes) -> str:
    """Every text, lone surrogates included: an odd first byte says that pairs of bytes are code units."""
    if data[:1] == b"\x01":
        return "".join(chr(data[at] << 8 | data[at + 1]) for at in range(1, len(data) - 1, 2))
    return data.decode(errors="surrogateescape")


def spec(data: bytes) -> None:
    """A run spec as data: a spec that reads itself again, or SpecError with at least one fault."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        form = to_json(parse_spec(document))
    except SpecError as refusal:
        assert refusal.faults
        return
    assert to_json(parse_spec(form)) == form
    if "itemsFrom" not in form["array"]:
        assert task_count(form, None) > 0


def spec_file(data: bytes) -> None:
    """The text of a spec file, YAML or JSON: a spec, or SpecError whose faults have lines that the text has."""
    for is_json in (False, True):
        try:
            check_text(data, is_json=is_json)
        except SpecError as refusal:
            assert refusal.faults
            str(refusal).encode()


class Requests:
    """A user's request to the api: the answer is an envelope with a status of the list, never an exception."""

    def __init__(self) -> None:
        self.desk, self.left = Desk(), 0

    def __call__(self, data: bytes) -> None:
        try:
            request = json.loads(data)
        except (ValueError, RecursionError):
            return
        if not self.left:
            self.desk, self.left = _open_desk(), INPUTS_A_STATE
        self.left -= 1
        reply = self.desk.api.handle(request, f"request-{self.left}", "q-default" if self.left % 2 else "")
        assert reply["statusCode"] in STATUS_CODES, reply
        assert len(json.dumps(reply, allow_nan=False)) < REPLY_LIMIT


def _open_desk() -> Desk:
    """One run in the controller's state (its id is in the seeds) and one in the inbox."""
    desk = Desk()
    desk.api.identities = Members()
    desk.submit()
    desk.fold_in()
    desk.submit(token="t-2", name="waiting")
    BUILT.clear()
    return desk


def _requests() -> list[dict[str, Any]]:
    run_id = _open_desk().body("ListRuns")["runs"][-1]["runId"]
    full = {**SPEC, "capacity": {"budgetUsd": 5, "deadline": "10h"}, "placement": {"constraints": [EXPRESSIONS[0]]}}
    return [
        {"action": "SubmitRun", "clientToken": "t-3", "spec": full},
        Members().event({"action": "SubmitRun", "clientToken": "t-6", "spec": SPEC}, "alice", NOW),
        {"action": "ValidateRun", "spec": full},
        {"action": "PlanRun", "spec": SPEC},
        {"action": "DescribeRun", "runId": run_id, "include": ["tasks", "cost"], "maxResults": 10, "nextToken": "NQ"},
        {"action": "ListRuns", "maxResults": 1, "nextToken": "NQ"},
        {"action": "CancelRun", "runId": run_id, "reason": "enough"},
        {"action": "UpdateRun", "runId": run_id, "changes": {"priority": 5, "deadline": "2h"}, "clientToken": "t-5"},
        {"action": "RetryRun", "runId": run_id, "failed": True, "cancelled": True, "clientToken": "t-4"},
        {"action": "ExplainRun", "runId": run_id, "index": 1},
        {"action": "DescribeCluster", "form": "columns"},
        {"action": "ListTasks", "runId": run_id, "status": ["PENDING", "FAILED"], "failed": False, "maxResults": 2},
        {"action": "ListInstances", "status": ["ACTIVE"], "type": "p3.*", "where": EXPRESSIONS[0], "maxResults": 1},
    ]


EXPRESSIONS = (
    "attribute:ecs.instance-type =~ (g5|p3).* and attribute:ecs.availability-zone != us-east-1d",
    "not(task:group == database) or task:startedBy in [a, 'b c', \"d\"]",
    "runningTasksCount >= 1 && registeredAt < 2018-06-18T22:28:28+00:00",
    "agentVersion < 1.14.5 || !agentConnected == false",
    "ec2InstanceId in ['i-1', 'i-4'] and attribute:stack !exists",
    "attribute:color !~ [^a-z]+(red|green)?",
)
SPEC_FILES = tuple(path.read_bytes() for path in sorted(ROOT.glob("containers/*/run*.yaml")))
WORDS = (
    "",
    "a",
    "\ud800",
    "\x1b[31m",
    "${index}",
    "${",
    "s3://b/k/",
    "1e999",
    "-0",
    "0:10",
    "10m",
    "null",
    "é",
    "x" * 5_000,
)
TARGETS = {
    "message": Target(Messages(), tuple(json.dumps(each).encode() for each in MESSAGES), WORDS),
    "expression": Target(
        expression,
        tuple(each.encode() for each in EXPRESSIONS),
        (*OPERATORS, *SUBJECTS, "and", "or", "not"),
        is_json=False,
    ),
    "spec": Target(
        spec,
        tuple(json.dumps(to_json(check_text(text)[0])).encode() for text in SPEC_FILES),
        WORDS,
    ),
    "spec-file": Target(
        spec_file, SPEC_FILES, (": ", "- ", "\n  ", "&a", "*a", "!!", "|", '"', "{", "[", "---\n"), is_json=False
    ),
    "api": Target(Requests(), tuple(json.dumps(each).encode() for each in _requests()), WORDS),
}
assert all(len(seed) < SIZE_LIMIT for target in TARGETS.values() for seed in target.seeds)
