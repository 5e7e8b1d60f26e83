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

import atheris

from tests.fuzz.changed_documents import change_once

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
                change_once(document, words, chance)
            changed = json.dumps(document).encode()
        except RecursionError:  # nested too deeply for the standard library to write
            return data
        return changed if len(changed) <= max_size else data

    return change


if __name__ == "__main__":
    main()
