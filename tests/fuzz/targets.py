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

from argosy.aws import sqs
from argosy.lifecycle.apply import apply
from argosy.messages.eventbridge import PoisonMessage, to_event
from argosy.model.run_record import RunRecord
from argosy.model.state import State
from argosy.model.stored import documents
from argosy.placement import query
from argosy.placement.query_tokens import OPERATORS, SUBJECTS
from argosy.placement.supply import InstanceRow, Supply
from argosy.spec.bounds import SIZE_LIMIT
from argosy.spec.faults import SpecError
from argosy.spec.file import check_text
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.shards import task_count
from tests.builders import BUILT, NOW, POLICY, launched, state_with_instance
from tests.fuzz.accepted_requests import EXPRESSIONS, Requests, requests
from tests.sample_messages import MESSAGES

INPUTS_A_STATE = 500  # then a fresh one: what an input leaves behind must not slow the next ones down
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
    "api": Target(Requests(), tuple(json.dumps(each).encode() for each in requests()), WORDS),
}
assert all(len(seed) < SIZE_LIMIT for target in TARGETS.values() for seed in target.seeds)
