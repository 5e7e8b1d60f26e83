"""Which flags has each verb? DSSTNE's, with its defaults; all faults of a command line are printed at once."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from recommender.faults import BadInput

UNUSED = ("mu", "mu1", "lambda1")  # of DSSTNE's optimisers; this program's has its own
RATE = 0.001  # what Adam is usually given; DSSTNE's 0.025 is for plain gradient descent


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadInput(f"{self.prog}: {message}")


def read_flags(verb: str, arguments: Sequence[str]) -> argparse.Namespace:
    """Raises BadInput; SystemExit(0) after -h."""
    if verb not in _VERBS:
        raise BadInput(f"{verb!r} is not a verb; there is {', '.join(_VERBS)}")
    parser = _Parser(prog=verb, allow_abbrev=False)
    _VERBS[verb](parser)
    return parser.parse_args(arguments)


def _whole(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
        return int(text)

    return parse


def _number(text: str) -> float:
    """DSSTNE's defaults are written as C++ does, `0.025f`."""
    try:
        value = float(text.removesuffix("f"))
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value


def _add(parser: argparse.ArgumentParser, flag: str, help: str, **options: Any) -> None:
    parser.add_argument(flag, help=help, required="default" not in options and "action" not in options, **options)


def _generate_netcdf(parser: argparse.ArgumentParser) -> None:
    _add(parser, "-d", "name of the data set", metavar="NAME")
    _add(parser, "-i", "text of samples and features", metavar="FILE")
    _add(parser, "-o", "data set to write", metavar="FILE")
    _add(parser, "-f", "feature index", metavar="FILE")
    _add(parser, "-s", "sample index; read if it is there, so that input and output have one order", metavar="FILE")
    _add(parser, "-c", "rebuild the feature index", action="store_true")
    _add(parser, "-m", "add new features to the index", action="store_true")
    _add(parser, "-t", "only indicator", choices=["indicator"], default="indicator")


def _train(parser: argparse.ArgumentParser) -> None:
    _add(parser, "-c", "JSON config of the network", metavar="FILE")
    _add(parser, "-i", "input data set", metavar="FILE")
    _add(parser, "-o", "output data set", metavar="FILE")
    _add(parser, "-n", "network to write", metavar="FILE")
    _add(parser, "-b", "samples of a step", type=_whole(1), default=1024)
    _add(parser, "-e", "passes over the data", type=_whole(1), default=40)
    _add(parser, "-d", "not used", default="")
    _add(parser, "-alpha", "learning rate", type=_number, default=RATE)
    _add(parser, "-lambda", "weight decay", type=_number, default=0.0001, dest="decay")
    for name in UNUSED:
        _add(parser, f"-{name}", "accepted and not used", type=_number, default=None)


def _predict(parser: argparse.ArgumentParser) -> None:
    _add(parser, "-d", "name of the data set", metavar="NAME")
    _add(parser, "-n", "trained network", metavar="FILE")
    _add(parser, "-r", "text of samples to recommend to", metavar="FILE")
    _add(parser, "-i", "index of the input features", metavar="FILE")
    _add(parser, "-o", "index of the output features", metavar="FILE")
    _add(parser, "-f", "text of features never to recommend to a sample", metavar="FILE")
    _add(parser, "-s", "recommendations to write", metavar="FILE")
    _add(parser, "-k", "recommendations for each sample", type=_whole(1), default=100)
    _add(parser, "-b", "samples at a time", type=_whole(1), default=1024)
    _add(parser, "-l", "layer; of another one than Output the raw activations", default="Output")
    _add(parser, "-p", "precision of the scores", default="4.3f")


def _generate_ratings(parser: argparse.ArgumentParser) -> None:
    _add(parser, "-o", "ratings to write", metavar="FILE")
    _add(parser, "-t", "ratings held out, to write", metavar="FILE")
    _add(parser, "-s", "samples", type=_whole(1), default=2000)
    _add(parser, "-f", "features", type=_whole(1), default=600)
    _add(parser, "-c", "clusters", type=_whole(1), default=12)


def _recall(parser: argparse.ArgumentParser) -> None:
    _add(parser, "-s", "recommendations", metavar="FILE")
    _add(parser, "-r", "the ratings they were made from", metavar="FILE")
    _add(parser, "-t", "the ratings held out", metavar="FILE")
    _add(parser, "-k", "how many recommendations count", type=_whole(1), default=10)


_VERBS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "generateNetCDF": _generate_netcdf,
    "train": _train,
    "predict": _predict,
    "generateRatings": _generate_ratings,
    "recall": _recall,
}
