"""May a deployment leave a cell out?

Only when nothing there costs money any more; otherwise `cdk deploy` fails. This is a custom resource of the home stack,
updated before the functions receive the new cells. It compares the cells of the new template with the recorded ones. It
closes a cell that is left out, and then checks it again: a controller that was about to launch there during the first
check is seen by the second or, later still, by the watchdog of the cell's own stack.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.aws import cell_records
from argosy.aws.shutdown import billable_capacity, ec2_client

MOST_NAMED = 3  # instances and fleets in a message: CloudFormation cuts a reason off at about 4 KB


class CellInUse(RuntimeError):
    """A cell that is left out still costs money. CloudFormation shows the message; nothing was changed."""


@dataclass(frozen=True)
class Home:
    """The deployment as the guard sees it. ec2: makes the EC2 client of a Region."""

    stage: str
    table: str
    dynamodb: Any
    ec2: Callable[[str], Any]


def on_event(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """CloudFormation creates, updates or deletes the resource. The teardown deletes home."""
    import boto3

    home = Home(
        stage=os.environ["ARGOSY_STAGE"],
        table=os.environ["ARGOSY_TABLE"],
        dynamodb=boto3.client("dynamodb"),
        ec2=ec2_client,
    )
    if event["RequestType"] != "Delete":
        before = event.get("OldResourceProperties", {}).get("Cells", ())
        take_over(home, event["ResourceProperties"]["Cells"], before)
    return {"PhysicalResourceId": event.get("PhysicalResourceId") or f"cells-{home.stage}"}


def take_over(home: Home, named: Iterable[str], before: Iterable[str] = ()) -> None:
    """Record the cells that the deployment names from now on; `before` are those that it named so far.

    Raises CellInUse when a cell is left out that still has instances or fleets that would launch some, and ClientError
    when a cell cannot be checked: then the deployment is not changed. A destroyed cell is not checked: it was empty
    when its stack was deleted, and its Region may be out of reach for good.
    """
    records = cell_records.read(home.dynamodb, home.table)
    cells: dict[str, str | None] = dict(records.cells if records else {})
    wanted = set(named)
    left_out = sorted({*cells, *before} - wanted)
    for region in left_out:
        if cells.get(region) != cell_records.DESTROYED:
            _refuse_if_in_use(home, region)
    for region in left_out:
        _leave_out(home, region, cells.get(region))
    for region in sorted(wanted):
        if cells.get(region, cell_records.LEFT_OUT) == cell_records.LEFT_OUT:
            cell_records.write(home.dynamodb, home.table, region, closed=None)


def _leave_out(home: Home, region: str, closed: str | None) -> None:
    if closed == cell_records.DESTROYED:
        cell_records.forget(home.dynamodb, home.table, region)
        return
    cell_records.write(home.dynamodb, home.table, region, closed or cell_records.LEFT_OUT)
    try:
        _refuse_if_in_use(home, region)
    except CellInUse:
        cell_records.write(home.dynamodb, home.table, region, closed)
        raise


def _refuse_if_in_use(home: Home, region: str) -> None:
    found = billable_capacity(home.ec2(region), home.stage)
    if not (found.instances or found.fleets):
        return
    raise CellInUse(
        f"the settings no longer name the cell {region}, but it still has {_some('instance', found.instances)} and "
        f"{_some('fleet', found.fleets)} with a target above 0. Destroy its stack first, while the settings still name "
        f"it: make destroy-cell CELL={region}, with the ARGS of the last make deploy. Then deploy without it."
    )


def _some(what: str, ids: tuple[str, ...]) -> str:
    named = ", ".join(ids[:MOST_NAMED]) + (", ..." if len(ids) > MOST_NAMED else "")
    return f"{len(ids)} {what}{'' if len(ids) == 1 else 's'}" + (f" ({named})" if ids else "")
