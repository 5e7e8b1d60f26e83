"""What does a task do that is given no verb? The ECS template's chain, from the same environment variables.

    DATAURL -> data | TRAININGCONFIGURL -> config | the four commands, in order | results -> S3

The template ran each variable unquoted through a shell, as root. Here each must be one of the program's own verbs, and
the step that fails is named.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

import argosy_storage as storage

from recommender import fetching, verbs
from recommender.faults import BadInput, NoDevice

COMMANDS = {
    "GENERATEINPUTCMD": "generateNetCDF -d gl_input -i data -o gl_input.nc -f features_input -s samples_input -c",
    "GENERATEOUTPUTCMD": "generateNetCDF -d gl_output -i data -o gl_output.nc -f features_output -s samples_input -c",
    "TRAINCMD": "train -c config -i gl_input.nc -o gl_output.nc -n gl.nc -b 256 -e 10",
    "PREDICTCMD": "predict -b 1024 -d gl -i features_input -o features_output -k 10 -n gl.nc -f data -s results"
    " -r data",
}
ADDRESSES = {"data": "DATAURL", "config": "TRAININGCONFIGURL"}


def run_chain(environment: Mapping[str, str]) -> None:
    """Work in a new folder, which is deleted afterwards. Raises BadInput, NoDevice, storage.Temporary or .Refused."""
    target = results_address(environment)
    missing = [name for name in ADDRESSES.values() if not environment.get(name)]
    if missing:
        raise BadInput(f"neither a verb nor {' and '.join(missing)} was given")
    commands = {name: _words(name, environment.get(name) or default) for name, default in COMMANDS.items()}
    addresses = {name: _absolute(environment[variable]) for name, variable in ADDRESSES.items()}
    with _scratch(environment.get("SCRATCH") or None) as folder, chdir(folder):
        for name, variable in ADDRESSES.items():
            storage.write(name, _fetched(variable, addresses[name]))
        for name, words in commands.items():
            print(f"running {shlex.join(words)}", flush=True)
            _step(name, words, environment)
        data = _results()
    attempt = {"argosy-attempt": environment.get("ARGOSY_TASK_ATTEMPT", "1")}
    written = storage.write_once(target, data, attempt)
    print(f"results {'written to' if written else 'were already at'} {target}", flush=True)


def _scratch(parent: str | None) -> tempfile.TemporaryDirectory[str]:
    try:
        return tempfile.TemporaryDirectory(prefix="recommender-", dir=parent)
    except OSError as error:
        raise BadInput(f"SCRATCH: no folder can be made in {parent or 'the usual places'}: {error.strerror}") from error


def results_address(environment: Mapping[str, str]) -> str:
    """The task's part; without Argosy the bucket that the template names. Raises BadInput when there is neither."""
    for name in ("RESULTSURL", "ARGOSY_PART_URI"):
        if environment.get(name):
            return _absolute(environment[name])
    if environment.get("S3BUCKETRESULTS"):
        return f"s3://{environment['S3BUCKETRESULTS']}/results.{environment.get('HOSTNAME') or os.uname().nodename}"
    raise BadInput("there is no place for the results: none of RESULTSURL, ARGOSY_PART_URI and S3BUCKETRESULTS is set")


def _absolute(address: str) -> str:
    """A path as it is seen from the folder that the task began in."""
    return address if "://" in address else str(Path(address).resolve())


def _words(name: str, command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise BadInput(f"{name}: {error}") from error


def _fetched(variable: str, address: str) -> bytes:
    try:
        return fetching.text(address).encode()
    except (BadInput, storage.Refused) as fault:
        raise BadInput(f"{variable}: {fault}") from fault


def _step(name: str, words: list[str], environment: Mapping[str, str]) -> None:
    try:
        verbs.run(words, environment)
    except BadInput as fault:
        raise BadInput(*(f"{name}: {each}" for each in fault.faults)) from fault
    except storage.Refused as fault:
        raise BadInput(f"{name}: {fault}") from fault
    except NoDevice as fault:
        raise NoDevice(f"{name}: {fault}") from fault


def _results() -> bytes:
    if not Path("results").is_file():
        raise BadInput("PREDICTCMD left no file `results`: its flag -s must name it so")
    return Path("results").read_bytes()
