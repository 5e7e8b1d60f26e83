"""Users name a time by a clock, a date or how long ago it was."""

from __future__ import annotations

import pytest

from argosy.cli.problems import CliError
from argosy.cli.typed_values import coming_moment, moment
from tests.fakes.cli import NOW  # 2026-11-21 06:27:33 UTC

MIDNIGHT = NOW - NOW % 86_400


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("90s", NOW - 90),
        ("10m", NOW - 600),
        ("1.5h", NOW - 5400),
        ("3d", NOW - 3 * 86_400),
        ("2026-11-21T05:00", MIDNIGHT + 5 * 3600),
        ("2026-11-21T05:00Z", MIDNIGHT + 5 * 3600),
        ("2026-11-21T05:00+02:00", MIDNIGHT + 3 * 3600),
        ("2026-11-21", MIDNIGHT),
        ("05:00:20", MIDNIGHT + 5 * 3600 + 20),
        ("23:00", MIDNIGHT - 3600),
    ],
)
def test_a_moment_is_read_as_people_write_it(text: str, at: float) -> None:
    assert moment(text, NOW) == at


@pytest.mark.parametrize("text", ["", "now", "10", "10x", "1:2", "25:00", "2026-13-01", "-5m"])
def test_what_is_no_moment_is_refused_with_the_forms_that_are(text: str) -> None:
    with pytest.raises(ValueError, match="is not a time"):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("23:00", MIDNIGHT + 23 * 3600),
        ("05:00", MIDNIGHT + 29 * 3600),
        ("2026-11-21T08:00+01:00", MIDNIGHT + 7 * 3600),
        ("2026-11-22", MIDNIGHT + 86_400),
    ],
)
def test_a_time_that_is_to_come_is_the_next_one_where_it_has_no_date(text: str, at: float) -> None:
    assert coming_moment(text, NOW) == at


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("2h", "--until: '2h' is not a time"),
        ("soon", "--until: 'soon' is not a time"),
        ("2026-11-21T05:00", "--until 2026-11-21T05:00 is in the past."),
    ],
)
def test_an_invalid_or_past_time_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(CliError, match=sentence):
        coming_moment(text, NOW)
