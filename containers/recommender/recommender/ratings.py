"""Ratings to try the program with, and how good its recommendations are: recall@k compared with that of popularity.

Samples fall into planted clusters; each cluster likes features of its own. One feature in five of a sample is held out:
a recommender that found the clusters finds it again; one that recommends popular features seldom does.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from recommender.faults import BadInput
from recommender.text_data import records

OWN = 0.85  # of a sample's features come from its cluster; the others from anywhere
HELD_OUT = 5  # every so many-th feature of a sample


def generate(samples: int, features: int, clusters: int, seed: int = 1) -> tuple[str, str]:
    """(text to train on, text held out): 20 to 40 ratings a sample, features of a cluster unequally popular."""
    draw = np.random.default_rng(seed)
    size = features // clusters
    weights = 1 / np.arange(1, size + 1) ** 0.5
    weights /= weights.sum()
    kept, held = [], []
    for sample in range(samples):
        first = draw.integers(clusters) * size
        count = int(draw.integers(20, 41))
        own = first + draw.choice(size, min(int(count * OWN), size), replace=False, p=weights)
        anywhere = draw.choice(features, count - len(own), replace=False)
        chosen = draw.permutation(np.unique(np.concatenate([own, anywhere])))
        rated = [f"item{feature},{draw.integers(1, 6)}" for feature in chosen]
        held.append(f"user{sample}\t" + ":".join(rated[::HELD_OUT]) + "\n")
        del rated[::HELD_OUT]
        kept.append(f"user{sample}\t" + ":".join(rated) + "\n")
    return "".join(kept), "".join(held)


def recall(recommended: str, data: str, held_out: str, k: int) -> tuple[float, float]:
    """Mean share of a sample's held-out features among its first k recommendations; the same for popularity.

    Popularity recommends to each sample the features that most samples of `data` have and it has not. Raises BadInput.
    """
    recommendations = {sample: found[:k] for sample, found in records(recommended, "the recommendations")}
    seen = {sample: set(found) for sample, found in records(data, "the data")}
    truth = {sample: set(found) for sample, found in records(held_out, "what was held out") if found}
    if not truth or not truth.keys() <= recommendations.keys():
        raise BadInput("recall needs recommendations for every sample that was held out")
    popular = [feature for feature, _ in Counter(f for found in seen.values() for f in found).most_common()]
    shares = []
    for sample, wanted in truth.items():
        mine = seen.get(sample, set())
        best = _first(popular, mine, k)
        shares.append((_share(recommendations[sample], wanted, k), _share(best, wanted, k)))
    found, baseline = np.mean(shares, axis=0)
    return float(found), float(baseline)


def _first(features: list[str], without: set[str], k: int) -> list[str]:
    chosen = []
    for feature in features:
        if feature not in without:
            chosen.append(feature)
            if len(chosen) == k:
                break
    return chosen


def _share(recommended: list[str], wanted: set[str], k: int) -> float:
    return len(wanted.intersection(recommended)) / min(k, len(wanted))
