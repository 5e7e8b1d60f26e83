"""The variables with which the members of a gang find each other: a pure function of the stored intent.

They are those of PyTorch: `torchrun` reads its options from `PET_*`
(https://github.com/pytorch/pytorch/blob/main/torch/distributed/argparse_util.py), and `init_process_group` the others
(https://docs.pytorch.org/docs/stable/distributed.html, environment variable initialization).
"""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

from argosy.model.gangs import Gang
from argosy.model.instances import Instance
from argosy.model.run_terms import GangTerms

FIRST_PORT, PORTS = 29_500, 2_000
TORCHRUN = "PET_"
LOOPBACK = "127.0.0.1"
LONGEST_ADDRESS = "255.255.255.255"
NAMES = frozenset({"MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "NNODES", "RANK", "WORLD_SIZE", "LOCAL_RANK"})
"""Besides those that begin with TORCHRUN: variables that a user's spec may not set with a gang."""


def environment(gang: Gang, place: tuple[int, int], terms: GangTerms, gpus: int) -> dict[str, str]:
    """place: number of the gang, rank of the member. gpus: of each member.

    With a process for each GPU, torchrun numbers the processes, and RANK and WORLD_SIZE are left to it.
    """
    number, rank = place
    first, port = gang.addresses[0], str(gang.port)
    processes = max(1, gpus) if terms.per_gpu else 1
    told = {
        "ARGOSY_GANG_INDEX": str(number),
        "ARGOSY_GANG_RANK": str(rank),
        "ARGOSY_GANG_SIZE": str(terms.size),
        "ARGOSY_GANG_HOSTS": ",".join(gang.addresses),
        "MASTER_ADDR": first,
        "MASTER_PORT": port,
        "NODE_RANK": str(rank),
        "NNODES": str(terms.size),
        "PET_NNODES": str(terms.size),
        "PET_NODE_RANK": str(rank),
        "PET_NPROC_PER_NODE": str(processes),
        "PET_MASTER_ADDR": first,
        "PET_MASTER_PORT": port,
    }
    return told if terms.per_gpu else told | {"RANK": str(rank), "WORLD_SIZE": str(terms.size), "LOCAL_RANK": "0"}


def of_aws_batch(told: Mapping[str, str]) -> dict[str, str]:
    """The variables of AWS Batch's multi-node parallel jobs, from those above:
    https://docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html"""
    return {
        "AWS_BATCH_JOB_NODE_INDEX": told["NODE_RANK"],
        "AWS_BATCH_JOB_NUM_NODES": told["NNODES"],
        "AWS_BATCH_JOB_MAIN_NODE_INDEX": "0",
        "AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS": told["MASTER_ADDR"],
    }


def longest(terms: GangTerms, number: int) -> dict[str, str]:
    """The longest that they may be."""
    gang = Gang(0.0, FIRST_PORT, (), (LONGEST_ADDRESS,) * terms.size)
    told = environment(gang, (number, terms.size - 1), terms, 99)
    return told | of_aws_batch(told)


def address_of(instance: Instance) -> str:
    """Where the others reach a member there. The instances of local mode are one machine, and each gets another address
    of its loopback interface."""
    if instance.private_ip != LOOPBACK:
        return instance.private_ip
    number = crc32(instance.id.encode())
    return f"127.{1 + (number >> 16) % 127}.{number >> 8 & 255}.{1 + number % 254}"


def port_of(run_number: int, number: int, attempt: int, taken: set[int]) -> int:
    """A port on which rank 0 listens. Attempts follow each other on different ports, because the operating system may
    hold the last one for a while. taken: by other gangs whose rank 0 is on that instance."""
    wanted = run_number * 7 + number + attempt * 13
    free = (FIRST_PORT + (wanted + step) % PORTS for step in range(PORTS))
    return next((port for port in free if port not in taken), FIRST_PORT + wanted % PORTS)
