"""The commands `image bake`, `image list` and `image delete`: AMIs that hold a container image."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argosy.cli import panels
from argosy.cli.command import command
from argosy.cli.figures import counted
from argosy.cli.outside_text import say
from argosy.cli.problems import AWS_FAULT, CliError, show
from argosy.cli.session import Session
from argosy.client.baking import image_amis
from argosy.client.errors import ArgosyError, InvalidInput, from_aws, is_denied

if TYPE_CHECKING:
    from argosy.client.baking.bake import BakeOrder, Result
    from argosy.client.baking.recipes import Recipe

_RIGHTS = "ask for the rights that docs/reference/rights.md lists for baking"
_SETTING = {"cpu_arm64": "cpuArm64", "gpu_arm64": "gpuArm64"}
_Cell = Annotated[str | None, typer.Option("--cell", metavar="REGION", help="[default: the deployment's first]")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="AMIs that hold an image, so that instances boot with it.", no_args_is_help=True)
    command(group, "bake", panel=panels.SETUP)(bake)
    command(group, "list", panel=panels.SETUP)(list_)
    command(group, "delete", panel=panels.SETUP)(delete)
    app.add_typer(group, name="image", rich_help_panel=panels.SETUP)


@dataclass(frozen=True)
class BakeOptions:
    """Which instances boot with the image."""

    types: Annotated[
        str, typer.Option("--type", metavar="GLOB", help="Types that choose the kinds of AMI and bake them: 'g6.*'.")
    ]
    cell: _Cell = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; the cost is still printed.")] = False


def bake(
    session: Session,
    image: Annotated[str, typer.Argument(metavar="IMAGE", help="As a run spec names it.")],
    which: BakeOptions,
) -> None:
    """Make an AMI with an image in it, one for each kind (cpu, gpu, ARM) among the types."""
    from argosy.client.baking.bake import BakeOrder, bake_all
    from argosy.client.baking.bake import bake as start
    from argosy.client.baking.recipes import recipes

    region, address = _cell(session, which.cell), _address(session, image)
    ec2, tools = session.client("ec2", region), session.tools
    wanted = recipes(ec2, session.client("ssm", region), session.connection.stage, region, which.types)
    _agree(session, wanted, region, which.yes)
    order = BakeOrder(
        prefix=session.deployment.prefix,
        stage=session.connection.stage,
        image=address,
        types=which.types,
        token=tools.new_token(),
        now=tools.now,
        say=partial(say, err=True),
    )
    results = list(bake_all({each.kind: start(ec2, each, order) for each in wanted}, order, tools.sleep))
    _report(session, order, region, results)


def _cell(session: Session, wanted: str | None) -> str:
    """Raises ArgosyError for local mode, and for a Region without a cell."""
    if session.connection.is_loopback:
        raise CliError("Local mode has no AMIs: it runs tasks on this machine.", next_step="--profile NAME uses AWS")
    there = session.deployment.cells or (session.deployment.region,)
    if wanted is not None and wanted not in there:
        raise InvalidInput(f"There is no cell {wanted[:40]}.", next_step=f"the cells are: {', '.join(there)}")
    return wanted or there[0]


def _address(session: Session, image: str) -> str:
    """The image's address in a registry; `argosy/NAME` is one that the deployment has published."""
    from pydantic import TypeAdapter, ValidationError

    from argosy.aws.folder_images import SsmImages
    from argosy.spec.fields import Image

    try:
        TypeAdapter(Image).validate_python(image)
    except ValidationError as fault:
        says = f"{image[:80]!r} is not the name of an image."
        raise InvalidInput(says, next_step="write NAME, NAME:TAG or NAME@sha256:DIGEST") from fault
    there = session.deployment
    found = SsmImages(session.client("ssm"), there.prefix, there.python).resolve(image)
    if found is None:
        raise InvalidInput(f"The deployment has no image {image}.", next_step="`argosy doctor` lists what is published")
    return found


def _agree(session: Session, wanted: list[Recipe], region: str, yes: bool) -> None:
    for each in wanted:
        place = each.places[0]
        say(
            f"{each.kind}: a {place.instance_type} for about 15 minutes, {each.usd:.2f} USD; then a snapshot of at "
            f"most {each.disk_gib} GiB, {each.most_usd_per_month:.2f} USD a month. The AMI is made from "
            f"{each.base[image_amis.BASE]}, for all {each.kind} types of {region}.",
            err=True,
        )
    if yes:
        return
    if session.wants_json or not session.tools.is_terminal():
        raise CliError("Nothing was started: this costs money.", next_step="add --yes to agree")
    if not typer.confirm("Start?", err=True):
        raise CliError("Nothing was started.")


def _report(session: Session, order: BakeOrder, region: str, results: list[Result]) -> None:
    made = [each for _, each in results if isinstance(each, image_amis.BakedAmi)]
    refused = {kind: _explained(each) for kind, each in results if isinstance(each, Exception)}
    setting = {"amis": {region: {_SETTING.get(each.kind, each.kind): each.ami_id for each in made}}}
    if session.wants_json:
        failed = {kind: {"error": each.message, "details": each.details} for kind, each in refused.items()}
        session.print_json({"made": [each.as_json() for each in made], "failed": failed, "setting": setting})
    else:
        _print(order, setting, len(made))
    for kind, fault in refused.items():
        show(ArgosyError(f"{kind}: {fault.message}", next_step=fault.next_step, details=fault.details))
    if refused:
        raise typer.Exit(AWS_FAULT)


def _print(order: BakeOrder, setting: dict[str, Any], count: int) -> None:
    if not count:
        return
    say(f"{counted(count, 'AMI')} with {order.image}. Under context.argosy in cdk.json, beside other amis:")
    say(json.dumps(setting))
    say("next: argosy explain RUN INDEX, of a first task on an instance, for boot, pull and load as they are now; then")
    say("      make deploy, and the same for a task on an instance that starts afterwards")


def _explained(fault: Exception) -> ArgosyError:
    """With the next step for what a bake needs besides a deployment."""
    if isinstance(fault, ArgosyError):
        return fault
    found = from_aws(fault)
    if is_denied(fault):
        return ArgosyError(found.message, next_step=_RIGHTS)
    if "iamInstanceProfile" in str(fault):
        step = "`make deploy`: the deployment was made before there was a profile for this"
        return ArgosyError(found.message, next_step=step)
    return found


def list_(session: Session, cell: _Cell = None) -> None:
    """The AMIs that hold an image, and instances that bake one."""
    from argosy.cli.tables import PlainTable

    region = _cell(session, cell)
    ec2, stage = session.client("ec2", region), session.connection.stage
    amis, instances = image_amis.baked_amis(ec2, stage), image_amis.baking_instances(ec2, stage)
    used = {each.get("ImageId") for each in image_amis.newest_templates(ec2).values()} if amis else set()
    if session.wants_json:
        rows = [{**each.as_json(), "inUse": each.ami_id in used} for each in amis]
        session.print_json({"region": region, "amis": rows, "baking": [each.as_json() for each in instances]})
        return
    table = PlainTable("AMI", "KIND", "IMAGE", "FROM", "MADE", ">GIB", "STATE", least=("FROM", "GIB"))
    for each in amis:
        state = "in use" if each.ami_id in used else each.state
        table.add_row(each.ami_id, each.kind, each.image, each.base, each.made_at[:16], str(each.size_gib), state)
    session.console.print(table if amis else f"No AMI of {region} holds an image: argosy image bake IMAGE --type GLOB")
    for instance in instances:
        says = (
            f"{instance.instance_id} bakes {instance.image} since {instance.launched_at[:16]}, and is {instance.state}"
        )
        step = session.again(f"image delete {instance.instance_id}")
        session.console.print(f"{says}; if its command has ended: {step}")


def delete(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="AMI", help="An AMI or instance of `argosy image list`.")],
    cell: _Cell = None,
) -> None:
    """Delete an AMI and its snapshot; not one from which fleets launch."""
    region = _cell(session, cell)
    found = image_amis.delete(session.client("ec2", region), session.connection.stage, name)
    if found is None:
        says = f"{name[:40]} is not an AMI of {region} that holds an image of this deployment."
        raise InvalidInput(says, next_step=session.again("image list"))
    if session.wants_json:
        session.print_json({"deleted": name})
        return
    what = "is terminated" if isinstance(found, image_amis.BakingInstance) else "and its snapshot are deleted"
    say(f"{name}, {found.image}: {what}.")
