"""May a user's own task definition run here?

Not one that reaches the host below its container. Any submitter may put any command into it, so it is judged as
untrusted: the host holds the instance's role, the agent and every neighbour. A revision never changes, so the judged
revision is the one that runs. Fields:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task_definition_parameters.html
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

_HARMLESS_OPTIONS = frozenset({"no-new-privileges", "no-new-privileges:true"})


def is_allowed_family(family: str, globs: tuple[str, ...]) -> bool:
    return any(fnmatchcase(family, glob) for glob in globs)


def ways_to_the_host(definition: Mapping[str, Any]) -> Iterator[str]:
    """The ways in which a task of this definition (as ECS describes it) would reach its host, one end of a sentence
    each."""
    for field in ("networkMode", "pidMode", "ipcMode"):
        if definition.get(field) == "host":
            yield f"shares a namespace with its host ({field} host)"
    for volume in definition.get("volumes") or ():
        yield from _of_volume(volume)
    for container in definition.get("containerDefinitions") or ():
        yield from (f"has a container {container.get('name')} {way}" for way in _of_container(container))


def _of_volume(volume: Mapping[str, Any]) -> Iterator[str]:
    """A volume of Docker's own is a separate folder; options of its driver can name any path."""
    name, docker = volume.get("name"), volume.get("dockerVolumeConfiguration") or {}
    path = (volume.get("host") or {}).get("sourcePath")
    if path:
        yield f"mounts a path of its host (volume {name}: {path})"
    if docker.get("driverOpts") or docker.get("driver", "local") != "local":
        yield f"has a volume {name} with a driver or driver options of its own"


def _of_container(container: Mapping[str, Any]) -> Iterator[str]:
    linux = container.get("linuxParameters") or {}
    added = (linux.get("capabilities") or {}).get("add")
    options = sorted(set(container.get("dockerSecurityOptions") or ()) - _HARMLESS_OPTIONS)
    if container.get("privileged"):
        yield "that is privileged"
    if added:
        yield f"with added capabilities ({', '.join(added)})"
    if linux.get("devices"):
        yield f"with devices of its host ({', '.join(str(each.get('hostPath')) for each in linux['devices'])})"
    if options:
        yield f"with security options ({', '.join(options)})"
