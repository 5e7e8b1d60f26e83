"""Annotated types of the values in a run spec.

Each limit names its source: AWS's own, or ours with the reason.
"""

from __future__ import annotations

import json
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from argosy.model.run_terms import deadline_at, port_of
from argosy.spec import shards
from argosy.spec.program import is_local_input

TASK_LIMIT = 1_000_000  # tasks of one run: the size at which a tick over one TaskTable is measured (DESIGN section 6)
ATTEMPT_LIMIT = 10  # AWS Batch's limit
RULE_LIMIT = 5  # evaluateOnExit rules: AWS Batch's limit
TIMEOUT_LIMIT_S = 14 * 86_400  # AWS Batch: a job may run 14 days
RUN_LIMIT_S = 366 * 86_400  # ours: as a deadline's
USD_LIMIT = 1_000_000_000.0  # ours: more than any bill
Usd = Annotated[float, Field(gt=0, le=USD_LIMIT)]
TAG_LIMIT = 45  # AWS allows 50; five are kept for Argosy's own
MEMORY_LIMIT_MIB = 24 * 1024 * 1024  # the largest EC2 instances have 24 TiB
DISK_LIMIT_GIB = 16_384  # a gp3 volume's limit as this project sets it (settings: diskGiB)
GROUP_LIMIT = 10  # groups named by affinity, and by antiAffinity: ours, as RunTask's limit on constraints
SOFT_LIMIT, WEIGHT_LIMIT = 10, 1_000_000  # ours: the sum of ten such weights still sorts with other keys
INPUT_LIMIT = 100  # ours: they travel in the overrides of a task, which have 8,192 characters
PACKAGE_LIMIT = 100  # ours
HOST_PORT_LIMIT = 94  # ECS: 100 reserved ports on an instance, including those of its agent
RESERVED_ENVIRONMENT = ("ARGOSY_", "AWS_BATCH_")
PINNED_ENVIRONMENT = "NVIDIA_VISIBLE_DEVICES"  # any other value would expose the neighbours' GPUs to a task


def refused(message: str) -> PydanticCustomError:
    # The message is passed as context, because pydantic would read its braces as a template.
    return PydanticCustomError("argosy", "{message}", {"message": message})


class Strict(BaseModel):
    """No unknown fields, no conversions, immutable; names in camelCase."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, alias_generator=to_camel, allow_inf_nan=False)


def _whole(value: Any) -> Any:
    """Python regards true and 1.0 as equal to 1."""
    if isinstance(value, (bool, float)):
        raise refused(f"must be a whole number, not {json.dumps(value)}")
    return value


def _range(text: str) -> str:
    try:
        shards.parse_range(text)
    except ValueError as fault:
        raise refused(str(fault)) from fault
    return text


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise refused("must not contain a NUL character: a program cannot receive one")
    return text


def _environment_name(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name, re.ASCII):
        raise refused("is not the name of an environment variable: letters, digits and _, not beginning with a digit")
    for prefix in RESERVED_ENVIRONMENT:
        if name.startswith(prefix):
            raise refused(f"is reserved: Argosy itself sets the variables that begin with {prefix}")
    if name == PINNED_ENVIRONMENT:
        raise refused("is reserved: Argosy sets it to the GPUs of the task")
    return name


def _tag_key(key: str) -> str:
    if not re.fullmatch(r"[\w\s.:/=+\-@]{1,128}", key):
        raise refused("a tag's key has 1 to 128 letters, digits, spaces and . : / = + - @ _")
    if key.lower().startswith(("aws:", "argosy:")):
        raise refused("is reserved: tags may not begin with aws: or argosy:")
    return key


def _tag_value(value: str) -> str:
    if not re.fullmatch(r"[\w\s.:/=+\-@]{0,256}", value):
        raise refused("a tag's value has at most 256 letters, digits, spaces and . : / = + - @ _")
    return value


def _s3_folder(uri: str) -> str:
    """Parts `.` and `..` would leave the folder when results are downloaded; empty parts disappear on a disk."""
    found = re.fullmatch(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9!_.*'()=+@:,-]+)*)/?", uri, re.ASCII)
    if found is None:
        raise refused(
            "must be s3://BUCKET/PREFIX/ of letters, digits and ! _ . * ' ( ) = + @ : , - without empty parts"
        )
    if any(part in (".", "..") for part in found[2].split("/")):
        raise refused("must not have . or .. as a part")
    return uri


def _image(image: str) -> str:
    """A Docker reference: [registry[:port]/]path[:tag][@sha256:digest]."""
    domain_and_path = r"(?:[A-Za-z0-9.-]+(?::[0-9]{1,5})?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*"
    if not re.fullmatch(
        rf"{domain_and_path}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@sha256:[0-9a-f]{{64}})?", image
    ):
        raise refused("must be the name of an image: NAME, NAME:TAG or NAME@sha256:DIGEST, such as argosy/digits")
    return image


def _host_port(given: Any) -> Any:
    try:
        port_of(given)
    except ValueError as fault:
        raise refused(str(fault)) from fault
    return given


def _no_port_twice(given: list[Any]) -> list[Any]:
    ports = [port_of(each) for each in given]
    twice = next((port for index, port in enumerate(ports) if port in ports[:index]), None)
    if twice is not None:
        raise refused(f"asks for {twice[0]}/{twice[1]} twice")
    return given


def _deadline(text: str) -> str:
    try:
        deadline_at(text, 0.0)
    except ValueError as fault:
        raise refused(str(fault)) from fault
    return text


def _no_cell_twice(given: list[str]) -> list[str]:
    twice = next((cell for index, cell in enumerate(given) if cell in given[:index]), None)
    if twice is not None:
        raise refused(f"names {twice} twice")
    return given


Version = Annotated[Literal[1], BeforeValidator(_whole)]
Text = Annotated[str, Field(max_length=8192), AfterValidator(_no_nul)]
RangeText = Annotated[str, AfterValidator(_range), Field(json_schema_extra={"pattern": r"^[0-9]{1,16}:[0-9]{1,16}$"})]
S3Folder = Annotated[str, Field(max_length=512), AfterValidator(_s3_folder)]
S3Object = Annotated[str, Field(max_length=1024, pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/.+[^/]$")]
Image = Annotated[str, Field(max_length=255), AfterValidator(_image)]
EnvironmentName = Annotated[str, Field(max_length=255), AfterValidator(_environment_name)]
TagKey = Annotated[str, AfterValidator(_tag_key)]
TagValue = Annotated[str, AfterValidator(_tag_value)]
GroupName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_:./-]{1,255}$")]  # ECS: up to 255 characters
HostPort = Annotated[
    Any,
    AfterValidator(_host_port),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": "^[0-9]{1,5}/(tcp|udp)$"},
            ]
        }
    ),
]
HostPorts = Annotated[list[HostPort], Field(min_length=1, max_length=HOST_PORT_LIMIT), AfterValidator(_no_port_twice)]
Deadline = Annotated[str, Field(max_length=64), AfterValidator(_deadline)]
Cells = Annotated[
    list[Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]],
    Field(min_length=1, max_length=8),
    AfterValidator(_no_cell_twice),
]
ExitCodeGlob = Annotated[str, Field(pattern=r"^[0-9*?]{1,512}$")]  # Batch: digits and *
ReasonGlob = Annotated[str, Field(min_length=1, max_length=512)]


def _input(uri: str) -> str:
    """The bucket is written out, so that submission can check whether the programs may read it. The bucket of a
    dependency's results is known by then. What is on this machine becomes an address when it is uploaded."""
    if is_local_input(uri):
        return uri
    bucket = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]/"
    if not re.fullmatch(rf"({bucket}|\$\{{dependency\.[a-z0-9-]+\.output\}}).*", uri, re.ASCII | re.DOTALL):
        raise refused(
            "must be s3://BUCKET/KEY, s3://BUCKET/PREFIX/ for all objects below it, or a path of this machine"
        )
    return uri


def _not_blank(text: str) -> str:
    if not text.strip():
        raise refused("must not be empty")
    return text


def _program(words: Any) -> Any:
    if isinstance(words, list) and not words[0].strip():
        raise refused("must begin with the program to run")
    return words


def _requirement(text: str) -> str:
    """By name only: an option of pip, a path or a bare address would mean something else on another machine."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(\s*[\[<>=!~;@(].*)?", text.strip(), re.ASCII):
        raise refused("must be a requirement by name, such as pandas, numpy>=2 or torch==2.5.1")
    return text


ALL_GPUS = "ALL"


GPU_PARTS = (0.125, 0.25, 0.5)  # of g6f and gr6f instances (aws.md 7.1)


def _all_or_count(given: Any) -> str:
    if given == ALL_GPUS:
        return "all"
    return "part" if isinstance(given, float) and 0 < given < 1 else "count"


def _gpu_part(given: float) -> float:
    if given not in GPU_PARTS:
        raise refused(f"{given:g} is no part of a GPU that EC2 offers: 0.125, 0.25 or 0.5")
    return given


GpuCount = Annotated[
    Annotated[int, Field(ge=0, le=16), Tag("count")]
    | Annotated[float, AfterValidator(_gpu_part), WithJsonSchema({"enum": [*GPU_PARTS]}), Tag("part")]
    | Annotated[Literal["ALL"], Tag("all")],
    Discriminator(_all_or_count),
]


AlikeCount = Annotated[
    Annotated[int, Field(ge=1, le=TASK_LIMIT), Tag("count")] | Annotated[Literal["never"], Tag("never")],
    Discriminator(lambda given: "never" if isinstance(given, str) else "count"),
]


class GpuShareSpec(Strict):
    """The part of a GPU that a task has to itself, enforced by NVIDIA's Multi-Process Service (MPS)."""

    memory_mib: int = Field(ge=1, le=MEMORY_LIMIT_MIB, description="MiB of the GPU's memory; a hard limit.")
    max_compute_percent: int | None = Field(
        default=None, ge=1, le=100, description="Limit of its part of the GPU's compute capacity. Default: none."
    )


class EnvironmentEntry(Strict):
    """One variable in ECS's own form."""

    name: EnvironmentName = Field(description="Name of the variable.")
    value: Text = Field(description="Its value; ${...} is substituted.")


def _as_mapping(entries: dict[str, str] | list[EnvironmentEntry]) -> dict[str, str]:
    if isinstance(entries, dict):
        return entries
    environment: dict[str, str] = {}
    for entry in entries:
        if entry.name in environment:
            raise refused(f"names {entry.name} twice")
        environment[entry.name] = entry.value
    return environment


def _form(value: Any) -> str:
    return "list" if isinstance(value, list) else "map"


def _words_or_text(value: Any) -> str:
    return "list" if isinstance(value, list) else "text"


def _as_list(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


Environment = Annotated[
    Annotated[dict[EnvironmentName, Text], Tag("map")] | Annotated[list[EnvironmentEntry], Tag("list")],
    Discriminator(_form),
    AfterValidator(_as_mapping),
]

Script = Annotated[Text, AfterValidator(_not_blank)]
Program = Annotated[
    Annotated[list[Text], Field(min_length=1, max_length=1000), Tag("list")] | Annotated[Script, Tag("text")],
    Discriminator(_words_or_text),
    AfterValidator(_program),
]
Input = Annotated[Text, Field(max_length=1024), AfterValidator(_input)]
Inputs = Annotated[
    Annotated[list[Input], Field(min_length=1, max_length=INPUT_LIMIT), Tag("list")] | Annotated[Input, Tag("text")],
    Discriminator(_words_or_text),
    AfterValidator(_as_list),
]
Requirement = Annotated[str, Field(max_length=512), AfterValidator(_requirement)]
