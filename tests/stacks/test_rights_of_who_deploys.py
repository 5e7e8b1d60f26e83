"""Is every call of AWS that make's own targets lead to among the rights that docs/reference/rights.md says they need?

The CDK's own calls are AWS's to document. Ours are found from the programs that a target of the Makefile runs.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.stacks.calls import ROOT, Reached, operations_of

REPOSITORY = ROOT.parent
PAGE = REPOSITORY / "docs" / "reference" / "rights.md"
TARGETS = ("doctor", "bootstrap", "deploy", "roll", "destroy", "destroy-cell")
IAM_NAMES = {
    "service-quotas": "servicequotas",
    "lambda:Invoke": "lambda:InvokeFunction",
    "s3:HeadBucket": "s3:ListBucket",
}
DOCTOR = ("argosy.cli.deployment.doctor", "register")
ACCESS = ("argosy.cli.deployment.access", "register")
IMAGE = ("argosy.cli.deployment.image", "register")
NO_RIGHT_NEEDED = {"sts:GetCallerIdentity"}  # AWS: "No permissions are required to perform this operation"
# Only with --probe, which no other target gives.
PROBED = {
    *(f"ec2:{name}" for name in ("DescribeFleets", "ModifyFleet")),
    *(f"ecs:{name}" for name in ("ListContainerInstances", "ListTaskDefinitions", "ListTasks", "RunTask", "StopTask")),
    *(f"s3:{name}Object" for name in ("Put", "Delete")),
    "lambda:InvokeFunction",
}
ROW = re.compile(r"^\| (?P<rights>(?:`[a-z0-9]+:\w+`(?:, )?)+) \| [^|]* \| (?P<targets>[^|]+) \| ", re.MULTILINE)


def recipe(target: str) -> str:
    """The commands of the target, with the Makefile's variables substituted."""
    text = (REPOSITORY / "Makefile").read_text().replace("\\\n", " ")
    assigned = re.findall(r"^([A-Z_]+) [:?]?= (.*)$", text, re.MULTILINE)
    variables = {name: value.replace(f"$({name})", "") for name, value in assigned}  # one sets itself at its first use
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", text, re.MULTILINE)
    assert found is not None, target
    lines, before = found[1], ""
    while lines != before:
        before, lines = lines, re.sub(r"\$\(([A-Z_]+)\)", lambda name: variables.get(name[1], ""), lines)
    return lines


def programs(target: str) -> set[tuple[str, str]]:
    """Entry points. `stacks.preflight` runs the doctor as a separate program."""
    commands = recipe(target)
    found = {(module, "main") for module in re.findall(r"-m (stacks\.\w+)", commands)}
    return found | ({DOCTOR} if "argosy doctor" in commands or ("stacks.preflight", "main") in found else set())


def rights_for(target: str) -> set[str]:
    calls = (call.partition(":") for call in Reached(programs(target)).operations())
    names = {(service, operations_of(service)[method]) for service, _, method in calls}
    rights = {f"{IAM_NAMES.get(service, service)}:{operation}" for service, operation in names}
    unused = set() if target == "doctor" else PROBED
    return {IAM_NAMES.get(right, right) for right in rights} - NO_RIGHT_NEEDED - unused


def documented() -> dict[str, set[str]]:
    """By target, the documented rights."""
    _, _, section = PAGE.read_text().partition("## Rights for deploying\n")
    found: dict[str, set[str]] = {target: set() for target in TARGETS}
    for row in ROW.finditer(section.partition("\n## ")[0]):
        for target in re.findall(r"`make ([a-z-]+)`", row["targets"]):
            found[target] |= set(re.findall(r"`([^`]+)`", row["rights"]))
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_the_documents_list_every_right_that_a_make_target_needs_and_no_other(target: str) -> None:
    assert documented()[target] == rights_for(target)


def test_the_programs_are_those_that_the_makefile_runs() -> None:
    asked = {("stacks.amis", "main"), ("stacks.published_images", "main")}
    assert programs("roll") == asked
    assert programs("deploy") == asked | {("stacks.preflight", "main"), DOCTOR}
    assert "ssm:GetParametersByPath" in rights_for("roll")


def test_the_documents_list_every_right_that_entrances_need_in_addition_to_a_users() -> None:
    text = PAGE.read_text()
    told = re.search(r"`argosy access` needs ([^.]*)\.", text)
    assert told is not None
    calls = [call for call in Reached([ACCESS]).operations() if call.startswith("lambda:")]
    names = {f"lambda:{operations_of('lambda')[call.partition(':')[2]]}" for call in calls} - {"lambda:Invoke"}
    assert set(re.findall(r"`(lambda:\w+)`", told[1])) == names


def test_the_documents_list_every_right_that_baking_needs() -> None:
    _, _, text = PAGE.read_text().partition("## Rights for baking\n")
    calls = [call.partition(":")[2] for call in Reached([IMAGE]).operations() if call.startswith("ec2:")]
    names = {f"ec2:{operations_of('ec2')[name]}" for name in calls}
    given_with_others = {"ec2:CreateTags", "iam:PassRole", "ssm:GetParameter"}
    assert set(re.findall(r"`(\w+:\w+)`", text.partition("\n## ")[0])) == names | given_with_others


def test_without_the_probe_the_doctor_asks_no_function_of_the_deployment() -> None:
    """Which is why `lambda:InvokeFunction` is only among the probe's rights."""
    folder = Path(ROOT / "argosy" / "cli" / "deployment")
    sources = {*folder.glob("*.py")} - {folder / name for name in ("access.py", "debug_dump.py", "probe.py")}
    assert not [path.name for path in sources if re.search(r"session\.api\b|\.invoke\(", path.read_text())]
