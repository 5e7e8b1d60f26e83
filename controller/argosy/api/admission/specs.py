"""May this deployment run the spec? The spec's own faults, and those that only a deployment can find.

The deployment's limits, images and item files are arguments. Without limits, as in `argosy validate` without a
deployment, nothing is checked against them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from argosy.api.admission.gangs import gang_limit_faults
from argosy.api.admission.instance_types import amount_of, shape_faults, with_all_gpus
from argosy.api.admission.program_files import program_file_faults
from argosy.catalogue.lookup import load_catalogue
from argosy.layout import CHECKPOINTS, JOURNAL, PROGRAMS, split_s3
from argosy.model.policy import Policy
from argosy.model.resources import Resources
from argosy.model.run_terms import LONGEST_DEADLINE_S, X86_64, RunTerms, deadline_at
from argosy.placement.query import DISTINCT_INSTANCE, check_constraints, check_strategy, is_attribute, subjects
from argosy.placement.strategy import is_function_name
from argosy.ports import DefinitionReader, ImageResolver, ItemsReader, ItemsUnreadable
from argosy.spec import bounds, shards
from argosy.spec.definitions import is_allowed_family, ways_to_the_host
from argosy.spec.faults import Fault, SpecError, shown
from argosy.spec.fields import TASK_LIMIT
from argosy.spec.models import RunSpec
from argosy.spec.overrides import length_faults
from argosy.spec.parse import parse_spec, to_json
from argosy.spec.program import DEFAULT_IMAGE
from argosy.spec.services import target_group_faults
from argosy.spec.templates import item_faults
from argosy.spec.terms import terms_of
from argosy.spec.tries import CheckpointSpec

if TYPE_CHECKING:  # it takes a tenth of a second, and commands that check a spec do without
    from argosy.settings.settings import Settings

UPLOAD_BYTES_PER_S = 90_000_000  # about the 0.75 Gbit/s that AWS promises a c5.large; assumed, not measured
OWN_NAMESPACE, GPU_SUFFIX = "argosy/", "-gpu"  # argosy/NAME; its GPU flavour, if any, is argosy/NAME-gpu
_FOLDER = re.compile(r"[a-z][a-z0-9-]*", re.ASCII)  # the name of a folder of containers/


@dataclass(frozen=True, slots=True)
class DeploymentLimits:
    """The limits of a deployment. shapes: what an instance of each of its types offers to tasks; empty = unknown."""

    default_output: str  # s3://bucket/ or s3://bucket/prefix/
    buckets: frozenset[str]  # where results may go, its own bucket included
    shapes: Mapping[str, Resources]
    fitness_functions: frozenset[str] = frozenset()  # the owner's, which a strategy may name
    cells: tuple[str, ...] = ()  # the deployment's Regions; empty = unknown
    disks_gib: Mapping[str, int] = field(default_factory=dict)  # of each of `shapes`, for tasks; empty = unknown
    registry_region: str = ""  # images can be pulled from ECR in this Region only; "" = from anywhere
    pools: tuple[tuple[str, str, str], ...] = ()  # (cell, instance type, zone) that may be bought; empty = unknown
    policy: Policy = field(default_factory=Policy)  # of it, the attributes that instances get
    families: tuple[str, ...] = ("*",)  # globs of the task definition families that runs may name
    input_buckets: frozenset[str] = frozenset()  # that programs may read, besides `buckets`
    target_groups: Mapping[str, str] = field(default_factory=dict)  # ARNs by the names that services give
    session_owners: tuple[str, ...] = ()  # globs of roles whose session names identify a person
    stop_timeout_s: float = 90.0  # from SIGTERM to SIGKILL


@dataclass(frozen=True, slots=True)
class Sources:
    """The data for checking a submission, apart from the deployment's own state."""

    images: ImageResolver
    items: ItemsReader
    definitions: DefinitionReader
    unknown_image: Callable[[str], str] | None = None  # why a name has no image; None: it can be published
    image_notes: Callable[[str], Sequence[str]] = lambda image: ()  # what is perhaps not intended
    local_notes: Callable[[Mapping[str, Any]], Iterable[str]] = lambda form: ()  # of what AWS does otherwise
    image_bytes: Callable[[str], int] = lambda image: 0  # of an image, compressed; 0 = unknown


@dataclass(frozen=True, slots=True)
class Admission:
    """A run that may be submitted. notes: sentences about what is allowed but perhaps not intended."""

    form: dict[str, Any]  # the validated JSON form, defaults filled in
    terms: RunTerms
    image: str  # resolved; empty when the spec names a task definition
    task_count: int
    notes: tuple[str, ...] = ()


def limits_of(settings: Settings, bucket: str) -> DeploymentLimits:
    """The limits of a deployment that owns `bucket`. Its types are those named and offered in any of its cells."""
    catalogue = load_catalogue()
    names = {name for cell in settings.cells for name, _ in settings.pools(cell)}
    shapes = {
        name: Resources(kind.cpu_units, kind.registered_memory_mib, kind.gpus)
        for name, kind in catalogue.items()
        if name in names
    }
    policy = settings.policy()
    buckets = frozenset({bucket, *settings.output_buckets})
    functions = frozenset(settings.fitness_functions)
    return DeploymentLimits(
        default_output=f"s3://{bucket}/",
        buckets=buckets,
        shapes=shapes,
        disks_gib={name: policy.task_disk_gib_of(catalogue[name]) for name in shapes},
        fitness_functions=functions,
        cells=settings.cells,
        pools=tuple((cell, name, zone) for cell in settings.cells for name, zone in settings.pools(cell)),
        policy=policy,
        registry_region=settings.region if settings.subnets == "private" else "",
        families=settings.families,
        input_buckets=frozenset(settings.input_buckets),
        target_groups=settings.target_groups,
        session_owners=settings.session_owners,
        stop_timeout_s=settings.stop_timeout_s,
    )


def admit(data: Any, limits: DeploymentLimits, sources: Sources, now: float = 0.0) -> Admission:
    """Check everything that can be known at submission. now: epoch seconds; 0 = compare deadlines with nothing. Raises
    SpecError with every fault."""
    spec, faults = _check(data, limits, now)
    known = {fault.path for fault in faults}
    image, image_faults = ("", []) if known & {"", "container", "container.image"} else _image(data, sources)
    count, item_faults = (None, []) if known & {"", "array", "array.itemsFrom"} else _items(data, sources.items)
    own_faults = [] if known & {"", "taskDefinition"} else list(_definition_faults(data, limits, sources.definitions))
    image_faults += _out_of_reach("container.image", image, limits)
    if spec is None or faults or image_faults or item_faults or own_faults:
        raise SpecError([*faults, *image_faults, *item_faults, *own_faults])
    form, terms = to_json(spec), terms_of(spec)
    notes = [*_flavour_notes(form, terms, sources.images), *sources.image_notes(image)]
    notes += [*_constraint_notes(terms, limits), *_daemon_notes(terms, limits)]
    notes += _checkpoint_notes(spec.checkpoint, limits.stop_timeout_s) if spec.checkpoint else ()
    notes += sources.local_notes(form)
    return Admission(form, terms, image, shards.task_count(form, count), tuple(notes))


def _checkpoint_notes(checkpoint: CheckpointSpec, stop_timeout_s: float) -> Iterator[str]:
    """A note on a checkpoint that is too large for a stop."""
    gib = checkpoint.size_gib or 0.0
    takes_s = gib * 2**30 / UPLOAD_BYTES_PER_S
    if takes_s <= stop_timeout_s:
        return
    rate = f"at an assumed {UPLOAD_BYTES_PER_S / 1e6:.0f} MB/s"
    step = "set checkpoint.everySeconds, or create .commit during the work"
    if checkpoint.every_seconds:
        step = "a stopped task then resumes from its latest interval"
    yield (
        f"checkpoint.sizeGiB: {gib:g} GiB take about {takes_s:,.0f} s to upload, {rate}, and a stopped task has"
        f" {stop_timeout_s:.0f} s: {step}"
    )


def _constraint_notes(terms: RunTerms, limits: DeploymentLimits) -> list[str]:
    """Notes on constraints. Raises SpecError for constraints that no instance can ever meet."""
    if not terms.constraints:
        return []
    from argosy.api.admission.matching_instances import (  # loads the market and the placement engine
        constraint_faults,
        constraint_notes,
    )

    if faults := constraint_faults(terms, limits.pools, limits.policy):
        raise SpecError(faults)
    return constraint_notes(terms, limits.pools, limits.policy)


def _daemon_notes(terms: RunTerms, limits: DeploymentLimits) -> list[str]:
    """Notes on a daemon. Raises SpecError for one that is larger than every instance type."""
    if terms.daemon is None:
        return []
    from argosy.api.admission.matching_instances import daemon_faults, daemon_notes  # as above

    if faults := daemon_faults(terms, limits.pools, limits.policy):
        raise SpecError(faults)
    return daemon_notes(terms, limits.pools, limits.policy)


def check_spec(data: Any, limits: DeploymentLimits | None = None, now: float = 0.0) -> RunSpec:
    """The spec, after all checks that need at most the limits. Raises SpecError with every fault."""
    spec, faults = _check(data, limits, now)
    if spec is None or faults:
        raise SpecError(faults)
    return spec


def fingerprint(form: Mapping[str, Any]) -> str:
    """Hex digest of a JSON form, whatever the order of its fields. A client token remembers it."""
    return hashlib.sha256(json.dumps(form, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _check(data: Any, limits: DeploymentLimits | None, now: float) -> tuple[RunSpec | None, list[Fault]]:
    """The spec, if it is valid on its own, and every fault found."""
    spec: RunSpec | None = None
    data, faults = with_all_gpus(data, limits.shapes) if limits else (data, [])
    try:
        spec = parse_spec(data)
    except SpecError as refusal:
        faults += refusal.faults
    known = {fault.path for fault in faults}
    if isinstance(data, Mapping) and "" not in known:
        found = [
            *_placement_faults(data, limits),
            *_query_faults(data),
            *(limit_faults(data, limits) if limits else ()),
        ]
        found += _deadline_faults(data, now)
        faults += [fault for fault in found if fault.path not in known]
    return spec, faults


def limit_faults(data: Mapping[str, Any], limits: DeploymentLimits) -> Iterator[Fault]:
    """The parts of a spec, or of its JSON form, that this deployment does not allow."""
    try:
        bucket, key = split_s3(data.get("output") or limits.default_output)
    except (ValueError, AttributeError):
        bucket, key = None, ""  # reported as a fault of the field
    if bucket is not None and bucket not in limits.buckets:
        allowed = ", ".join(sorted(limits.buckets))
        yield Fault("output", f"bucket {bucket[:63]} is not one that this deployment may write to: {allowed}")
    if bucket == split_s3(limits.default_output)[0]:
        yield from _own_folder_faults(f"{key.rstrip('/')}/")
    if limits.shapes and data.get("taskDefinition") is None:
        yield from shape_faults(data.get("resources"), limits.shapes, limits.disks_gib)
    yield from (*gang_limit_faults(data, limits.policy, limits.shapes), *_cell_faults(data, limits.cells))
    yield from _family_faults(data.get("taskDefinition"), limits.families)
    yield from program_file_faults(data, limits.buckets, limits.input_buckets, split_s3(limits.default_output)[0])
    yield from target_group_faults(data, limits.target_groups, limits.cells) if "service" in data else ()


def _own_folder_faults(key: str) -> Iterator[Fault]:
    """Folders of the deployment's own bucket that no run may have its results in."""
    if key.startswith(JOURNAL):
        yield Fault("output", f"{JOURNAL} holds the controller's record, which expires: programs may not write there")
    if key.startswith(CHECKPOINTS):
        yield Fault("output", f"{CHECKPOINTS} holds checkpoints, which expire: name another folder")
    if key.startswith(PROGRAMS):
        yield Fault("output", f"{PROGRAMS} holds users' programs: name another folder")


def _family_faults(name: Any, families: tuple[str, ...]) -> Iterator[Fault]:
    family = name.partition(":")[0] if isinstance(name, str) else ""
    if family and not is_allowed_family(family, families):
        allowed = ", ".join(families)
        sentence = f"{shown(family)} is not a family that this deployment runs ({allowed}); its owner can add others to"
        yield Fault("taskDefinition", f"{sentence} the setting taskDefinitions")


def _cell_faults(data: Mapping[str, Any], cells: Sequence[str]) -> Iterator[Fault]:
    capacity = data.get("capacity")
    given = capacity.get("cells") if isinstance(capacity, Mapping) and cells else None
    for number, cell in enumerate(given if isinstance(given, list) else ()):
        if isinstance(cell, str) and cell not in cells:
            known = ", ".join(cells)
            yield Fault(f"capacity.cells[{number}]", f"{shown(cell)} is not a cell of this deployment ({known})")


def _deadline_faults(data: Any, now: float) -> Iterator[Fault]:
    """A deadline in the past, or implausibly far away. now: 0 = unknown."""
    capacity = data.get("capacity") if isinstance(data, Mapping) and now else None
    given = capacity.get("deadline") if isinstance(capacity, Mapping) else None
    try:
        at = deadline_at(given, now) if isinstance(given, str) else None
    except ValueError:
        return  # reported as a fault of the field
    if at is not None and at <= now:
        yield Fault("capacity.deadline", f"{shown(given)} is in the past")
    elif at is not None and at > now + LONGEST_DEADLINE_S:
        yield Fault("capacity.deadline", f"{shown(given)} is more than 366 days from now")


def _query_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of a daemon's query. It may not depend on what runs on an instance, which changes all the time."""
    daemon = data.get("daemon")
    query = daemon.get("instances") if isinstance(daemon, Mapping) else None
    if not isinstance(query, str):
        return
    faults = check_constraints([query])
    for message in faults:
        yield Fault("daemon.instances", message)
    if not faults and (query == DISTINCT_INSTANCE or not all(map(is_attribute, subjects(query)))):
        yield Fault(
            "daemon.instances", "may only refer to attributes of instances, such as attribute:ecs.instance-type"
        )


def _placement_faults(data: Mapping[str, Any], limits: DeploymentLimits | None) -> Iterator[Fault]:
    placement = data.get("placement")
    if not isinstance(placement, Mapping):
        return

    def check_chain(strategy: Sequence[str]) -> list[str]:
        """Only the deployment knows which functions are allowed; without one, every well-formed name is."""
        allowed = filter(is_function_name, strategy) if limits is None else limits.fitness_functions
        return check_strategy(strategy, frozenset(allowed))

    yield from _text_faults("placement.constraints", placement.get("constraints"), check_constraints)
    yield from _text_faults("placement.strategy", placement.get("strategy"), check_chain)
    soft = placement.get("softConstraints")
    for number, each in enumerate(soft if isinstance(soft, list) else ()):
        expression = each.get("expression") if isinstance(each, Mapping) else None
        for message in check_constraints([expression]) if isinstance(expression, str) else ():
            yield Fault(f"placement.softConstraints[{number}].expression", message)


def _text_faults(path: str, texts: Any, check: Callable[[Sequence[str]], list[str]]) -> list[Fault]:
    """The faults of each text alone or, if there are none, of all texts together."""
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        return []  # reported as a fault of the field
    alone = [Fault(f"{path}[{number}]", message) for number, text in enumerate(texts) for message in check([text])]
    return alone or [Fault(path, message) for message in check(texts)]


def _image(data: Mapping[str, Any], sources: Sources) -> tuple[str, list[Fault]]:
    image = data["container"].get("image") if data.get("container") else None
    if image is None and data.get("run") is not None:
        image = DEFAULT_IMAGE
    if image is None:
        return "", []
    resources = data.get("resources")
    architecture = resources.get("architecture") if isinstance(resources, Mapping) else None
    if architecture not in (None, X86_64) and image.startswith(OWN_NAMESPACE):
        return "", [Fault("resources.architecture", f"{image} is built for {X86_64}")]
    resolved = sources.images.resolve(image)
    if resolved is None:
        return "", [Fault("container.image", (sources.unknown_image or _unpublished)(image))]
    return resolved, []


def _out_of_reach(path: str, image: str, limits: DeploymentLimits) -> Iterator[Fault]:
    """Whether instances without a way out can pull it. A pull-through cache does not help: its first pull needs one.
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html"""
    region = limits.registry_region
    if region and image and not re.match(rf"\d{{12}}\.dkr\.ecr\.{region}\.amazonaws\.com(\.cn)?/", image):
        yield Fault(
            path,
            f"{image} cannot be pulled: the instances are in private subnets, which reach only ECR in"
            f" {region}: copy the image there",
        )


def _definition_faults(
    data: Mapping[str, Any], limits: DeploymentLimits, definitions: DefinitionReader
) -> Iterator[Fault]:
    """The faults of a user's own task definition. The controller checks the revision that it pins again."""
    name = data.get("taskDefinition")
    if name is None:
        return
    definition = definitions.describe(name)
    if definition is None:
        yield Fault("taskDefinition", f"{name} is not registered in this account and Region")
        return
    for way in ways_to_the_host(definition):
        yield Fault("taskDefinition", f"{name} {way}, which runs may not")
    for container in definition.get("containerDefinitions") or ():
        yield from _out_of_reach("taskDefinition", container.get("image") or "", limits)


def _unpublished(image: str) -> str:
    """A name of the deployment without a meaning. Only a folder of containers/ can be published under it."""
    if not _FOLDER.fullmatch(folder := image.removeprefix(OWN_NAMESPACE).removesuffix(GPU_SUFFIX)):
        return f"this deployment has no image {image}, and none can be published under that name"
    return (
        f'this deployment has no image {image}: `make deploy ARGS="-c images={folder}"` publishes'
        f" containers/{folder} (with Docker or podman), or name an image of a registry"
    )


def _flavour_notes(form: Mapping[str, Any], terms: RunTerms, images: ImageResolver) -> Iterator[str]:
    """The CPU flavour of an image for a run with GPUs. Not a fault: it works on local mode's simulated GPUs."""
    image = (form.get("container") or {}).get("image") or ""
    if not image.startswith(OWN_NAMESPACE) or image.endswith(GPU_SUFFIX):
        return
    gpus, other = terms.needs.gpus, f"{image}{GPU_SUFFIX}"
    its = amount_of("gpus", gpus) if gpus else "share of a GPU"
    if (gpus or terms.gpu_share_mib) and images.resolve(other) is not None:
        yield (
            f"container.image: {image} is built for CPUs and cannot use the {its} of each"
            f" task: use {other}, unless the GPUs are simulated"
        )


def _items(data: Mapping[str, Any], reader: ItemsReader) -> tuple[int | None, list[Fault]]:
    """How many items the `itemsFrom` object has (None for other arrays), and their faults."""
    uri = (data.get("array") or {}).get("itemsFrom")
    if uri is None:
        return None, []
    try:
        items = reader.read_items(uri)
    except ItemsUnreadable as fault:
        return None, [Fault("array.itemsFrom", str(fault))]
    if not 1 <= len(items) <= TASK_LIMIT:
        return None, [Fault("array.itemsFrom", f"has {len(items)} items; a run has 1 to {TASK_LIMIT} tasks")]
    where = "array.itemsFrom"
    faults = [Fault(f"{where}{fault.path}", fault.message) for fault in bounds.value_faults(items)]
    faults += item_faults(data, items, where)
    return len(items), faults or list(length_faults(data, items))
