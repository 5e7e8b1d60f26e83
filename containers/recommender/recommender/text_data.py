"""What do the text files say? DSSTNE's format, its index files, and the data sets that are made from them.

    sample<TAB>feature[,value]:feature[,value]:...

The network sees which features are there. A value (a rating, a date) is checked and dropped, as DSSTNE does for its
indicator data sets. What DSSTNE stores as NetCDF is stored here as a numpy archive under the same file name.
"""

from __future__ import annotations

import io
import zipfile
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recommender.faults import BadInput

NAMED = 5  # faulty lines that are printed one by one
Index = dict[str, int]


@dataclass(frozen=True)
class DataSet:
    """Sample i has the features `features[starts[i]:starts[i + 1]]`, of `width` in all."""

    name: str
    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    width: int

    def __len__(self) -> int:
        return len(self.starts) - 1


def records(text: str, source: str) -> Iterator[tuple[str, list[str]]]:
    """(sample, features) line by line. Raises BadInput that names the first faulty lines."""
    faults: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line:
            continue
        sample, tab, rest = line.partition("\t")
        features, wrong = _features(rest)
        if not tab or not sample:
            faults.append(f"{source}, line {number}: no sample and TAB at its start: {line[:40]!r}")
        elif wrong:
            faults.append(f"{source}, line {number}: the value of {wrong[:40]!r} is not a number")
        else:
            yield sample, features
        if len(faults) >= NAMED:
            break
    if faults:
        raise BadInput(*faults)


def _features(text: str) -> tuple[list[str], str]:
    """The features of a line, and the first element whose value is no number."""
    names = []
    for element in text.split(":"):
        name, comma, value = element.partition(",")
        if not name:
            continue
        if comma:
            try:
                float(value.partition(",")[0])
            except ValueError:
                return [], element
        names.append(name)
    return names, ""


def read_data(text: str, source: str, name: str, features: Index, samples: Index, *, grow: bool) -> DataSet:
    """A data set whose order of samples is that of `samples`, which grows; `features` grows if `grow`.

    Features that are not in the index are then left out. A sample that comes twice counts as it came last, as in
    DSSTNE. Raises BadInput.
    """
    rows: dict[int, array[int]] = {}
    for sample, found in records(text, source):
        if grow:
            for feature in found:
                features.setdefault(feature, len(features))
        known = sorted({features[feature] for feature in found if feature in features})
        rows[samples.setdefault(sample, len(samples))] = array("i", known)
    if not rows:
        raise BadInput(f"{source} holds no sample")
    nothing = array("i")
    lengths = [len(rows.get(row, nothing)) for row in range(len(samples))]
    flat = array("i")
    for row in range(len(samples)):
        flat.extend(rows.get(row, nothing))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return DataSet(name, starts, np.array(flat, np.int32), len(features))


def to_bytes(data: DataSet) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, name=data.name, starts=data.starts, features=data.features, width=data.width)
    return buffer.getvalue()


def from_bytes(data: bytes, source: str) -> DataSet:
    """The inverse of `to_bytes`. Raises BadInput."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = DataSet(str(arrays["name"]), arrays["starts"], arrays["features"], int(arrays["width"]))
        fits = found.starts[-1] == len(found.features) and (
            not len(found.features) or found.features.max() < found.width
        )
    except (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise BadInput(
            f"{source} is no data set of generateNetCDF (this program's own, not NetCDF): {error}"
        ) from error
    if not fits:
        raise BadInput(f"{source} is no data set of generateNetCDF: its features do not fit its samples")
    return found


def index_text(index: Index) -> str:
    return "".join(f"{label}\t{number}\n" for label, number in index.items())


def read_index(text: str, source: str) -> Index:
    """Raises BadInput unless the numbers are 0, 1, 2 ... in some order."""
    index: Index = {}
    for line in text.splitlines():
        label, _, number = line.partition("\t")
        index[label] = int(number) if number.isascii() and number.isdigit() else -1
    if sorted(index.values()) != list(range(len(index))):
        raise BadInput(f"{source} is no index: its lines must be LABEL<TAB>NUMBER with the numbers from 0 on")
    return index


def labels_of(index: Index) -> list[str]:
    """The labels in the order of their numbers."""
    return [label for label, _ in sorted(index.items(), key=lambda item: item[1])]


def lines_of(rows: Iterable[tuple[str, Iterable[tuple[str, str]]]]) -> Iterator[str]:
    """Rows of (sample, (feature, value)...) as DSSTNE's `predict` writes them, the last colon included."""
    for sample, pairs in rows:
        yield f"{sample}\t" + "".join(f"{feature},{value}:" for feature, value in pairs) + "\n"
