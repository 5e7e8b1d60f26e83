"""The program of a task of `argosy.map`: it reads functions and calls, makes the calls, and leaves their results.

This file runs alone in the container, with the standard library and the cloudpickle that is packed with it; so the
format is defined here: a line of JSON, which is read before anything is unpickled, then the pickles. A function that
was pickled by another Python would crash this one without a message.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

FORMAT = 1
FUNCTIONS, CALLS, PART = "functions.bin", "calls-*.bin", "part.pkl"
WRONG = 64  # sysexits.h, as of the runner: the request is wrong, and is not tried again
IN_A_CALL = "ARGOSY_IN_A_CALL"  # set in the environment of the calls, and of what they start
VALUE, ERROR = "value", "error"  # how a call ended
PRINTED_MAX = 10_000  # characters of a call that go back with its result; the log has all


class Unsuitable(Exception):
    """The object is not for this Python; the message is a sentence."""


def python_version() -> str:
    """The versions that pickles of code depend on: `3.11`."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def framed(pickles: Sequence[bytes], **head: Any) -> bytes:
    """One object of them all. head: the versions that a reader checks before it unpickles, and text of the calls."""
    sizes = [len(each) for each in pickles]
    line = json.dumps({"argosy": FORMAT, **head, "sizes": sizes}, separators=(",", ":"))
    return b"".join([line.encode(), b"\n", *pickles])


def unframed(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """The head, and the pickles. Raises Unsuitable."""
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        sizes, is_ours = head["sizes"], head["argosy"] == FORMAT
    except (ValueError, KeyError, TypeError) as fault:
        raise Unsuitable("the object is not one of argosy.map's") from fault
    if not is_ours:
        raise Unsuitable(f"the object has form {head['argosy']}, this program reads form {FORMAT}")
    if sum(sizes) != len(body):
        raise Unsuitable(f"the object has {len(body)} bytes of pickles where {sum(sizes)} were expected")
    return head, list(_pieces(body, sizes))


def _pieces(body: bytes, sizes: Sequence[int]) -> Iterator[bytes]:
    begin = 0
    for size in sizes:
        yield body[begin : begin + size]
        begin += size


def check_versions(head: dict[str, Any], cloudpickle_version: str) -> None:
    """Raises Unsuitable for pickles of another Python or cloudpickle."""
    if head.get("python") != python_version():
        raise Unsuitable(
            f"the function was sent by Python {head.get('python')} and this image has Python {python_version()}: use"
            f" an image with Python {head.get('python')}, or call argosy.map from Python {python_version()}"
        )
    if head.get("cloudpickle") != cloudpickle_version:
        raise Unsuitable(
            f"the function was sent by cloudpickle {head.get('cloudpickle')} and this image has {cloudpickle_version}"
        )


class ClassTable:
    """Pickles and unpickles. The user's own classes travel once, in this table: other pickles have their numbers."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self.classes = list(classes)
        self.numbers = {id(each): number for number, each in enumerate(self.classes)}

    def number_of(self, obj: Any) -> int | None:
        """What is written in place of a class; None for everything else."""
        return self.numbers.get(id(obj)) if isinstance(obj, type) else None

    def dumps(self, value: Any) -> bytes:
        """Raises whatever the value's own methods do."""
        file = io.BytesIO()
        pickler = numbering_pickler()(file)
        pickler.table = self
        pickler.dump(value)
        return file.getvalue()

    def loads(self, pickled: bytes) -> Any:
        """Raises whatever the value's own methods do."""
        unpickler = _NumberedUnpickler(io.BytesIO(pickled))
        unpickler.classes = self.classes
        return unpickler.load()


class _NumberedUnpickler(pickle.Unpickler):
    classes: Sequence[type] = ()

    def persistent_load(self, number: Any) -> Any:
        return self.classes[number]


@cache
def numbering_pickler() -> Any:
    """cloudpickle's, which asks a `table` for the numbers of classes."""
    import cloudpickle

    class NumberingPickler(cloudpickle.Pickler):  # type: ignore[misc]
        table = ClassTable()

        def persistent_id(self, obj: Any) -> int | None:
            return self.table.number_of(obj)

    return NumberingPickler


class Calls:
    """Makes calls. classes: pickled, of the table; functions: each pickled. What is unpickled is the user's own, and
    may raise anything."""

    def __init__(self, classes: bytes, functions: Sequence[bytes]) -> None:
        self._classes, self._functions = classes, functions
        self._table: ClassTable | None = None
        self._known: dict[int, Any] = {}

    @property
    def table(self) -> ClassTable:
        if self._table is None:
            self._table = ClassTable(pickle.loads(self._classes))  # noqa: S301 - who may write here is trusted
        return self._table

    def answer(self, call: bytes) -> bytes:
        """The pickled result: (VALUE, value), or (ERROR, pickled exception or None, name, text, traceback)."""
        try:
            number, arguments, named = self.table.loads(call)
            if number not in self._known:
                self._known[number] = pickle.loads(self._functions[number])  # noqa: S301
            value = self._known[number](*arguments, **named)
        except BaseException as fault:  # noqa: BLE001 - it is the user's, and goes back to the user
            return self._error(fault)
        return self._value(value)

    def _value(self, value: Any) -> bytes:
        try:
            return self.table.dumps((VALUE, value))
        except Exception as fault:  # noqa: BLE001 - whatever a value's own __reduce__ raises
            why = TypeError(f"the result, a {type(value).__qualname__}, cannot be pickled: {fault}")
            return pickle.dumps((ERROR, pickle.dumps(why), "TypeError", str(why), traceback.format_exc()))

    def _error(self, fault: BaseException) -> bytes:
        """Without the exception itself where it would not survive the journey."""
        own = fault.__traceback__.tb_next if fault.__traceback__ else None  # without this file's own lines
        text = "".join(traceback.format_exception(type(fault), fault, own))
        return pickle.dumps((ERROR, self._exception(fault), type(fault).__qualname__, _said(fault), text))

    def _exception(self, fault: BaseException) -> bytes | None:
        table = self._table or ClassTable()  # without one, it is why the call failed
        try:
            pickled = table.dumps(fault)
            table.loads(pickled)  # one whose __init__ needs more than its args comes back broken
        except Exception:  # noqa: BLE001 - whatever its own methods raise
            return None
        return pickled


class OutputCopy:
    """Standard output, and a copy of the first PRINTED_MAX characters of each call."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._kept = stream, ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._kept += text[: max(0, PRINTED_MAX - len(self._kept))]
        return int(self._stream.write(text))

    def taken(self) -> str:
        """The text since the last call of this."""
        kept, self._kept = self._kept, ""
        return kept


def _said(fault: BaseException) -> str:
    try:
        return str(fault)
    except Exception:  # noqa: BLE001 - whatever its __str__ raises
        return "<no text>"


def main() -> int:
    """Reads $ARGOSY_IN and writes $ARGOSY_OUT. The exit code: 0, or 64 with a sentence."""
    import cloudpickle

    given, out = Path(os.environ["ARGOSY_IN"]), Path(os.environ["ARGOSY_OUT"])
    try:
        [file] = given.glob(CALLS)
        head, (classes, *functions) = unframed((given / FUNCTIONS).read_bytes())
        check_versions(head, cloudpickle.__version__)
        _, calls = unframed(file.read_bytes())
    except Unsuitable as why:
        print(f"argosy: {why}.", file=sys.stderr, flush=True)
        return WRONG
    os.environ[IN_A_CALL] = "1"
    made = Calls(classes, functions)
    with redirect_stdout(OutputCopy(sys.stdout)) as output:
        found = [(made.answer(call), output.taken()) for call in calls]
    printed = {place: text for place, (_, text) in enumerate(found) if text}
    head = {"python": python_version(), "cloudpickle": cloudpickle.__version__, "printed": printed}
    (out / PART).write_bytes(framed([answer for answer, _ in found], **head))
    return 0


if __name__ == "__main__":
    sys.exit(main())
