"""The meaning of an exit code when ECS gives no reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.model.exit_codes import ENDED_BADLY, SAYS_NOTHING, bare, explained, signal_name, words


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (139, "SIGSEGV: a segmentation fault"),
        (137, "SIGKILL: killed from outside, often because memory ran out"),
        (143, "SIGTERM: it was asked to stop"),
        (160, "killed by signal 32"),
        (138, "killed by SIGUSR1"),
        (127, "there is no such program"),
        (126, "the program is not executable"),
        (3, ENDED_BADLY),
        (255, ENDED_BADLY),
    ],
)
def test_a_code_of_a_signal_or_of_the_shell_is_explained_and_others_are_the_programs_own(
    code: int, sentence: str
) -> None:
    assert words(code) == sentence


@given(st.integers(-5, 300))
def test_signals_lie_above_128_and_every_code_has_words(code: int) -> None:
    assert bool(signal_name(code)) == (128 < code <= 192)
    assert words(code)


def test_a_reason_that_says_something_stays_and_one_that_says_nothing_never_does() -> None:
    assert explained("OutOfMemoryError: x", 137) == "OutOfMemoryError: x"
    assert explained(SAYS_NOTHING, 139) == words(139)
    assert explained(None, 1) == ENDED_BADLY
    assert explained(SAYS_NOTHING, None) == "it left no exit code"


def test_the_reason_of_the_last_loss_is_bare() -> None:
    assert bare("given up after 12 losses: CannotPull: no") == "CannotPull: no"
    assert bare("given up at last") == "given up at last"
