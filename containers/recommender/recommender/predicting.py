"""What is recommended to each sample? The k best features, without those that a filter removes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from recommender import network as networks
from recommender.faults import BadInput
from recommender.text_data import DataSet, Index, labels_of, records


@dataclass(frozen=True)
class Question:
    """layer: "Output" for the k best features; another one for the outputs of all its units. form: printf's, `4.3f`."""

    layer: str
    k: int
    batch: int
    form: str


def read_form(text: str) -> str:
    """`-p`, such as 4.3f. Raises BadInput."""
    if not re.fullmatch(r"[0-9]{0,2}(\.[0-9]{1,2})?[feg]", text):
        raise BadInput(f"-p {text!r} is no precision such as 4.3f")
    return text


def read_filter(text: str, source: str, features: Index, samples: Index) -> dict[int, list[int]]:
    """Sample -> features never to recommend to it. Entries that neither has are left out. Raises BadInput."""
    return {
        samples[sample]: [features[feature] for feature in found if feature in features]
        for sample, found in records(text, source)
        if sample in samples
    }


def recommend(
    tf: Any,
    trained: networks.TrainedModel,
    data: DataSet,
    samples: Index,
    features: Index,
    removed: Mapping[int, Sequence[int]],
    question: Question,
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """(sample, (feature, score)...) for every sample, best first. Raises BadInput."""
    if (data.width, len(features)) != (trained.inputs, trained.outputs):
        raise BadInput(
            f"the network is from {trained.inputs} to {trained.outputs} features,"
            f" but the indexes given with -i and -o have {data.width} and {len(features)}"
        )
    is_output = networks.layer_place(trained.network, question.layer) == len(trained.network.layers) - 1
    ask = networks.scorer(tf, trained, question.layer)
    names, labels = labels_of(samples), labels_of(features)
    position = 0
    for rows, _ in networks.batches(tf, data, data, question.batch, shuffle=False):
        for row in ask(rows):
            if is_output:
                yield names[position], _best(row, labels, removed.get(position, ()), question)
            else:
                yield names[position], [(str(unit), _told(value, question)) for unit, value in enumerate(row)]
            position += 1


def _best(
    row: networks.Floats, labels: Sequence[str], removed: Sequence[int], question: Question
) -> list[tuple[str, str]]:
    allowed = np.ones(len(row), bool)
    allowed[list(removed)] = False
    k = min(question.k, int(allowed.sum()))
    # A stable order: of equal scores the feature that was seen first.
    chosen = np.argsort(-np.where(allowed, row, -np.inf), kind="stable")[:k]
    return [(labels[feature], _told(row[feature], question)) for feature in chosen]


def _told(value: float, question: Question) -> str:
    return f"%{question.form}" % value
