"""The script for the first evening with an AWS account, typed against local mode as far as possible.

Blocks marked `aws-only` are read instead: every command in them is one that its program understands.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.validate import ParamValidator

from argosy.local.options import LocalOptions
from argosy.settings.settings import Settings
from tests.fakes.command_lines import PROGRAMS, ROOT, commands_in, understand
from tests.fakes.commands import outcome_of
from tests.fakes.local_mode import local_aws

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs/guides/first-deployment.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh( aws-only)?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HERE = [text for mark, text in BLOCKS if not mark]
ON_AWS = [text for mark, text in BLOCKS if mark]
# How much of the page only AWS can answer: moving a line between the two kinds changes these figures.
AWS_ONLY_COMMANDS = 35
# "Ten minutes after the last run": local mode is at rest after some seconds.
TEN_MINUTES = """for EACH in $(seq 60); do
aws events describe-rule --name argosy-tick --query State | grep -q DISABLED && break || sleep 1
done
"""


def noted(blocks: list[str]) -> list[str]:
    """The command lines passed to `note`."""
    found = (re.match(r"""note (['"])(.*)\1$""", line) for block in blocks for line in block.splitlines())
    return [match[2] for match in found if match]


def kept(blocks: list[str]) -> list[str]:
    """The calls of AWS whose answers the shell keeps in a name."""
    return [each for block in blocks for each in re.findall(r"[A-Z]+=\$\((aws [^()]*)\)", block)]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """A folder like the checkout, and the shell that has typed every block that needs no AWS."""
    folder = tmp_path_factory.mktemp("evening")
    shutil.copytree(ROOT / "containers", folder / "containers", symlinks=True)
    with local_aws(LocalOptions(boot_s=0.2, tick_s=0.3)) as aws:
        script = "set +e -u\n" + "\n".join([*HERE[:-1], TEN_MINUTES, HERE[-1]])
        yield folder, outcome_of(script, folder, AWS_ENDPOINT_URL=aws.endpoint_url)


def test_every_command_looks_in_one_region_whichever_program_it_is() -> None:
    """N15: step 1 sets it for both kinds of AWS CLI, the CDK and argosy, and no command names another."""
    first = HERE[0]
    assert re.findall(r"AWS_(?:DEFAULT_)?REGION=([a-z0-9-]+)", first) == [Settings().region] * 2
    assert not any("--region" in line for _, block in BLOCKS for line in block.splitlines())


@pytest.mark.pages
def test_every_step_that_needs_no_aws_works(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = evening
    evidence = (folder / "evidence.txt").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^exit (\d+)$", evidence, re.MULTILINE) == ["0"] * len(noted(HERE)), evidence
    assert evidence.count(" $ ") >= len(noted(HERE))


@pytest.mark.pages
def test_the_evidence_holds_what_the_page_expects(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = evening
    steps = re.split(r"^\S+Z \$ ", (folder / "evidence.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = {step.partition("\n")[0]: step.partition("\n")[2] for step in steps}
    by_start = {line.split(" --set")[0].split()[1]: text for line, text in said.items() if line.startswith("argosy ")}
    assert "SUCCEEDED" in by_start["runs"]
    assert by_start["runs"].count("digits-") == 1  # two submits, one token, one run
    assert len(list((folder / "evening-results").rglob("*.jsonl"))) >= 18
    assert '"DISABLED"' in said["aws events describe-rule --name argosy-tick --query State"]


@pytest.mark.parametrize("line", [*noted(ON_AWS), *kept(ON_AWS)])
def test_what_only_aws_can_answer_is_understood(line: str) -> None:
    """Names that the shell substitutes are taken unchanged; the text within $( ) is read separately."""
    plain = re.sub(r"\\(.)", r"\1", line)
    inner = re.findall(r"\$\(([^()]*)\)", plain)
    outer = re.sub(r"\$\([^()]*\)|\$[A-Z]+", "7", plain).replace("--cli-input-json file://interrupt.json", "")
    for text in (outer, *inner):
        for words in commands_in(text) if '{"' not in text else [text.split()[:5]]:
            if words[0] in PROGRAMS:
                understand(words)


def test_the_aws_only_part_is_counted() -> None:
    assert len(noted(ON_AWS)) == AWS_ONLY_COMMANDS
    assert len(noted(HERE)) >= 15


@pytest.mark.pages
def test_the_experiment_is_a_request_that_fis_knows(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = evening
    request: dict[str, Any] = json.loads((folder / "interrupt.json").read_text())
    shape = boto3.client("fis").meta.service_model.operation_model("CreateExperimentTemplate").input_shape
    assert shape.members["clientToken"].metadata["idempotencyToken"]  # AWS's command makes one for each order
    assert ParamValidator().validate({**request, "clientToken": "made"}, shape).generate_report() == ""


# AWS and this program as step 6 meets them: the role is not known for the first orders, the first experiment fails.
STAND_IN = """\
#!{python}
import json, pathlib, sys
words = " ".join([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]])
log = pathlib.Path("calls.txt")
before = log.read_text().count(" ".join(words.split()[:3])) if log.exists() else 0
with log.open("a") as calls:
    calls.write(words + chr(10))
task = "arn:aws:ecs:eu-west-1:123456789012:task/argosy/f00"
rows = [("PENDING", "", None), ("RUNNING", "i-0busy", task), ("RUNNING", "i-0other", task)]
tasks = [dict(status=status, instance=instance, taskArn=arn) for status, instance, arn in rows]
if words.startswith("argosy status") and "--json" in words:
    print(json.dumps({{"taskList": tasks}}))
if "describe-tasks" in words:
    print("definition-of", words.split("--tasks ")[1].split()[0])
if "create-experiment-template" in words:
    if before < 2:
        sys.exit(254)
    print("EXT1")
if "start-experiment" in words:
    if before < 1:
        sys.exit(254)
    print(f"EXP{{before}}")
if "get-experiment" in words and "--id EXP" in words and "status" in words:
    print("failed" if "--id EXP1" in words else "running")
"""


@pytest.fixture(scope="module")
def step_6(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The output of the shell that typed the interruption, and its calls."""
    folder = tmp_path_factory.mktemp("step-6")
    for name in ("aws", "argosy"):
        (folder / name).write_text(STAND_IN.format(python=sys.executable))
        (folder / name).chmod(0o755)
    [request] = [block for block in HERE if "> interrupt.json" in block]
    [orders] = [block for block in ON_AWS if "create-experiment-template" in block]
    script = "\n".join(
        ["set -u", "sleep() { :; }", HERE[0], request, "PATIENT=patient-1", orders, 'echo "$DEFINITION"']
    )
    environment = {"PATH": f"{folder}:{Path(sys.executable).parent}:/usr/bin:/bin"}
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout.splitlines()[-1] == "definition-of arn:aws:ecs:eu-west-1:123456789012:task/argosy/f00", done
    return folder, (folder / "calls.txt").read_text().splitlines()


def test_the_interruption_hits_the_instance_of_a_running_task(step_6: tuple[Path, list[str]]) -> None:
    folder, _ = step_6
    request = json.loads((folder / "interrupt.json").read_text())
    assert request["targets"]["one"]["resourceArns"] == ["arn:aws:ec2:eu-west-1:123456789012:instance/i-0busy"]
    assert request["roleArn"] == "arn:aws:iam::123456789012:role/argosy-evening"


def test_the_interruption_is_ordered_until_the_role_is_known(step_6: tuple[Path, list[str]]) -> None:
    _, calls = step_6
    assert sum(each.startswith("aws fis create-experiment-template") for each in calls) == 3
    starts = [each for each in calls if each.startswith("aws fis start-experiment")]
    assert len(starts) == 3  # refused, failed, running
    assert all("--experiment-template-id EXT1" in each for each in starts)


def test_the_bill_is_compared_with_every_run_by_line() -> None:
    assert re.search(r'^for EACH in .*"runs"\].*; do\nnote "argosy cost \$EACH --by line"\ndone\n', PAGE, re.MULTILINE)
    before_the_end = PAGE.partition("note 'make destroy")[0]
    assert "note \"argosy cost $LAST --by line\"\nnote 'argosy cluster'" in before_the_end
    assert "--id $TEMPLATE" in PAGE.partition("note 'make destroy")[2]


def test_no_command_needs_a_gnu_date() -> None:
    assert " -d yesterday" not in PAGE
    assert {line.split("date -u ")[1].split(")")[0].split()[0] for line in noted(ON_AWS) if "date -u " in line} == {
        "+%F"
    }


def test_what_it_confirms_is_in_the_list_of_unconfirmed_assumptions() -> None:
    """Each phrase after Confirms shares its key words with one row of the table."""
    table = (ROOT / "docs/maintainers/notes/unconfirmed.md").read_text(encoding="utf-8")
    rows = [set(re.findall(r"[a-z]{4,}", row.lower())) for row in table.splitlines() if row.startswith("|")]
    phrases = [
        each
        for part in re.findall(r"Confirms:(.*?)(?:\n\n|\Z)", PAGE, re.DOTALL)
        for each in re.findall(r"\*([^*]+)\*", part)
    ]
    assert len(phrases) >= 10
    for phrase in phrases:
        words = set(re.findall(r"[a-z]{4,}", phrase.lower()))
        assert any(len(words & row) >= min(3, len(words)) for row in rows), phrase
