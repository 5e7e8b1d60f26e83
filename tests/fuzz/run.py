"""Does a reader of outside text ever fail? Atheris (libFuzzer) feeds one target with inputs that reach new branches.

    python -m tests.fuzz.run message --seconds 60
    python -m tests.fuzz.run api --inputs 1000000 --seed 7

It ends with exit code 0 when no input failed; otherwise it shows the exception and writes the input to build/fuzz.
Inputs that reach new branches stay there for the next time. Inputs that are JSON are changed as documents, in one to
three places, because changed bytes are hardly ever JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import atheris

FOLDER = Path("build/fuzz")
SECONDS_AN_INPUT = 5  # more is a fault; libFuzzer's -timeout is in whole seconds
MEMORY_MIB = 2_048
LONGEST_INPUT = 16_384  # bytes
BYTES_SHARE = 0.15  # of the inputs to JSON targets that are changed as bytes


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=-1, help="stop after so many")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with atheris.instrument_imports(include=["argosy"], enable_loader_override=False):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[options.target]
    flags = _flags(options, FOLDER / options.target, target.seeds, target.words)
    if target.is_json:
        atheris.Setup(flags, target.one_input, custom_mutator=changer(target.words))
    else:
        atheris.Setup(flags, target.one_input)
    atheris.Fuzz()


def _flags(options: argparse.Namespace, folder: Path, seeds: Sequence[bytes], words: Sequence[str]) -> list[str]:
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    dictionary = folder / "words"
    spelt = ("".join(f"\\x{byte:02x}" for byte in word.encode(errors="surrogatepass")) for word in words if word)
    dictionary.write_text("".join(f'"{word}"\n' for word in spelt), encoding="ascii")
    limits = [f"-timeout={SECONDS_AN_INPUT}", f"-rss_limit_mb={MEMORY_MIB}", f"-max_len={LONGEST_INPUT}"]
    amount = [f"-max_total_time={options.seconds}", f"-runs={options.inputs}", f"-seed={options.seed}"]
    return [
        sys.argv[0],
        *limits,
        *amount,
        f"-dict={dictionary}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        str(corpus),
    ]


def changer(words: Sequence[str]) -> Callable[[bytes, int, int], bytes]:
    """A mutation of JSON: (input, most bytes, seed) -> the next input."""

    def change(data: bytes, max_size: int, seed: int) -> bytes:
        chance = random.Random(seed)
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, (dict, list)) or chance.random() < BYTES_SHARE:
            return bytes(atheris.Mutate(data, max_size))
        try:
            for _ in range(chance.randint(1, 3)):
                _change_once(document, words, chance)
            changed = json.dumps(document).encode()
        except RecursionError:  # nested too deeply for the standard library to write
            return data
        return changed if len(changed) <= max_size else data

    return change


def _change_once(document: Any, words: Sequence[str], chance: random.Random) -> None:
    holder = chance.choice(_holders(document))
    keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys or chance.random() < 0.1:
        _put(holder, chance.choice(words), _value(document, words, chance))
        return
    key = chance.choice(keys)
    what = chance.random()
    if what < 0.2:
        del holder[key]
    elif what < 0.3 and isinstance(holder, dict):
        holder[chance.choice(words)] = holder.pop(key)
    elif what < 0.5 and isinstance(holder[key], str):
        text = holder[key]
        at = chance.randint(0, len(text))
        holder[key] = text[:at] + chance.choice(words) + text[at + chance.randint(0, 3) :]
    else:
        holder[key] = _value(document, words, chance)


def _holders(document: Any) -> list[Any]:
    """Every object and list of the document, itself included."""
    found, pending = [], [document]
    while pending:
        each = pending.pop()
        if isinstance(each, (dict, list)):
            found.append(each)
            pending.extend(each.values() if isinstance(each, dict) else each)
    return found


def _put(holder: Any, key: str, value: Any) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    else:
        holder.append(value)


def _value(document: Any, words: Sequence[str], chance: random.Random) -> Any:
    """A value that may occur anywhere in JSON: odd numbers, words, a copy of another part, something nested."""
    numbers = [0, -1, 1, 2**31, 2**53, 2**63, 2**70, -0.0, 1e-9, 1e308, float("inf"), float("nan"), True, False, None]
    kinds: list[Callable[[], Any]] = [
        lambda: chance.choice(numbers),
        lambda: chance.choice(words),
        lambda: json.loads(json.dumps(chance.choice(_holders(document)))),
        lambda: json.loads("[" * (depth := chance.choice([1, 3, 30, 500])) + "]" * depth),
        dict,
    ]
    return chance.choice(kinds)()


if __name__ == "__main__":
    main()
