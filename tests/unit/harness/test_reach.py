"""The branches that trials reach, as `python -m tests.harness.reach` prints them."""

from __future__ import annotations

import pytest

from tests.harness import reach


@pytest.mark.deep
def test_a_trial_without_faults_reaches_a_part_of_each_room_and_the_rest_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert reach.main(["--trials", "2", "--jobs", "2", "--faults", "none", "--names"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "2 trials from seed 0, 0 violations"
    found = {line.split()[0]: line.split() for line in printed[1:] if line[0] != " "}
    assert found.keys() == set(reach.ROOMS)
    assert 30.0 < float(found["engine"][1].rstrip("%")) < 100.0
    assert sum(int(words[5]) for words in found.values()) == sum(line.startswith(" ") for line in printed)
