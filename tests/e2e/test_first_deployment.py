"""The evening's script for the first AWS account, typed against local mode as far as that goes.

Blocks marked `aws-only` are read instead: every command in them is one that its program understands.
"""

from __future__ import annotations

import json
import os
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

from argosy.local.cloud import LocalAws
from argosy.local.options import LocalOptions
from tests.fakes.command_lines import PROGRAMS, ROOT, commands_in, understand

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs/first-deployment.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```sh( aws-only)?\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
HERE = [text for mark, text in BLOCKS if not mark]
ON_AWS = [text for mark, text in BLOCKS if mark]
# How much of the page only AWS can answer: whoever moves a line between the two kinds says so here.
AWS_ONLY_COMMANDS = 30


def noted(blocks: list[str]) -> list[str]:
    """The command lines that `note` is given."""
    found = (re.match(r"""note (['"])(.*)\1$""", line) for block in blocks for line in block.splitlines())
    return [match[2] for match in found if match]


@pytest.fixture(scope="module")
def evening(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, subprocess.CompletedProcess[str]]]:
    """A folder like the checkout, and the shell that has typed every block that needs no AWS."""
    folder = tmp_path_factory.mktemp("evening")
    shutil.copytree(ROOT / "containers", folder / "containers", symlinks=True)
    binaries = Path(sys.executable).parent
    with LocalAws(options=LocalOptions(boot_s=0.2, tick_s=0.3)) as aws:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("AWS_")},
            "AWS_ENDPOINT_URL": aws.endpoint_url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "PATH": f"{binaries}:/usr/bin:/bin",
        }
        script = "set -u\n" + "\n".join(HERE)
        yield (
            folder,
            subprocess.run(
                ["bash", "-c", script],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=170,
            ),
        )


def test_every_step_that_needs_no_aws_works(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = evening
    evidence = (folder / "evidence.txt").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"^exit (\d+)$", evidence, re.MULTILINE) == ["0"] * len(noted(HERE)), evidence
    assert evidence.count(" $ ") >= len(noted(HERE))


def test_the_evidence_holds_what_the_page_expects(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = evening
    steps = re.split(r"^\S+Z \$ ", (folder / "evidence.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    said = {step.partition("\n")[0]: step.partition("\n")[2] for step in steps}
    by_start = {line.split(" --set")[0].split()[1]: text for line, text in said.items() if line.startswith("argosy ")}
    assert "SUCCEEDED" in by_start["runs"]
    assert by_start["runs"].count("digits-") == 1  # two submits, one token, one run
    assert len(list((folder / "evening-results").rglob("*.jsonl"))) >= 18
    assert '"DISABLED"' in said["aws events describe-rule --name argosy-tick --query State"]


@pytest.mark.parametrize("line", noted(ON_AWS))
def test_what_only_aws_can_answer_is_understood(line: str) -> None:
    """Names that the shell fills in are taken as they are; what is within $( ) is read by itself."""
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


def test_the_experiment_is_a_request_that_fis_knows(evening: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = evening
    request: dict[str, Any] = json.loads((folder / "interrupt.json").read_text())
    shape = boto3.client("fis").meta.service_model.operation_model("CreateExperimentTemplate").input_shape
    assert ParamValidator().validate(request, shape).generate_report() == ""


def test_what_it_confirms_stands_in_the_operators_list() -> None:
    """Each phrase after Confirms shares its telling words with one row of the table."""
    table = (ROOT / "docs/operations.md").read_text().partition("## What only a live account can confirm")[2]
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
