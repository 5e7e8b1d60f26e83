"""The options of an embedded AWS, and the folders of Argosy's own modules and images."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from argosy.client.local_key import LocalKey
from argosy.local.deployment import local_settings
from argosy.local.gpus import Gpu
from argosy.settings.settings import Settings

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def package_root() -> Path:
    """The folder that `argosy` is imported from."""
    return Path(__file__).resolve().parents[2]


def images_folder() -> Path:
    """Inside the package when it was installed from a wheel, else `containers/` of the checkout."""
    shipped = package_root() / "argosy" / "containers"
    return shipped if shipped.is_dir() else package_root().parent / "containers"


def is_checkout() -> bool:
    """Whether this is a checkout, where `make` can be typed, and no installed package."""
    return (package_root().parent / "Makefile").is_file()


def runner_file() -> Path:
    """Where `make runner` puts the init of containers for this machine; it may not exist yet."""
    machine = platform.machine()
    return package_root().parent / "build" / "runner" / _ARCHITECTURES.get(machine, machine) / "argosy-runner"


# The controller's patience, in proportion to boot times of a second. Tasks may wait long for a free core of this
# machine, so pending tasks are never given up.
EAGER_POLICY = MappingProxyType(
    {
        "sweep_s": 15.0,
        "eager_sweep_s": 3.0,
        "health_s": 1.0,
        "order_patience_s": 20.0,
        "cool_off_s": 20.0,
        "cool_off_max_s": 120.0,
        "cool_off_fade_s": 120.0,
        "cool_down_s": 5.0,
        "foreign_patience_s": 3.0,
        "refusal_pause_s": 3.0,
        "register_patience_s": 60.0,
        "first_order": 0,  # instances that never join cost nothing here
        "absence_s": 30.0,
        "takeover_s": 1.0,  # a controller that was killed sends nothing any more
        "stop_again_s": 15.0,
        "pending_patience_s": 36_000.0,
        "pull_patience_s": 36_000.0,
        "fate_s": 0.0,  # this machine's instances end only on request
        "gpu_fate_s": 0.0,
        "retry_backoff_s": 0.5,
        "boot_s": 1.0,
        "start_s": 1.0,
    }
)
# soon_s: more than the seconds between two ticks while nothing is to do (`lambdas.ticker.QUIET_S`).
EAGER_LOOP = MappingProxyType({"lease_s": 10.0, "wait_s": 1.0, "soon_s": 12.0})


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """Defaults are those of `argosy local`. Times in seconds."""

    settings: Settings = field(default_factory=local_settings)
    images_root: Path = field(default_factory=images_folder)
    key: LocalKey | None = None  # its users' access key; None: the one that its port had, or a random one
    pythons: Mapping[str, str] = field(default_factory=dict)  # glob over image names -> the Python that runs them
    engine: str | None = None  # podman or docker, which then run the tasks; None: as processes of this machine
    runner: Path = field(default_factory=runner_file)  # the init of podman's containers with a user's program
    gpus: tuple[Gpu, ...] = ()  # of this machine, for the tasks; none: GPUs are simulated
    state_dir: Path | None = None  # logs of the functions; None: a temporary folder that goes with the process
    keep: Path | None = None  # where runs, results and logs outlive the process; None: nowhere
    fresh: bool = False  # forget what is there
    readings: frozenset[str] = frozenset()  # of contradictory contracts of AWS, the less usual ones (emulator/readings)
    boot_s: float = 0.2  # from launch to a running instance
    tick_s: float = 1.0  # replaces the one-minute schedule
    processes: int = field(default_factory=lambda: max(4, os.cpu_count() or 1))  # tasks that really run at once
    min_free_bytes: int = 1024**2  # of the temporary folder's disk; with less no task is started
    stop_timeout_s: float | None = None  # None: each container's own stopTimeout
    loop: Mapping[str, float] = field(default_factory=lambda: EAGER_LOOP)
    policy: Mapping[str, float] = field(default_factory=lambda: EAGER_POLICY)
    call_rates: float = 25.0  # the controller's calls in a second, as a multiple of what AWS allows
    api_handler: str = "argosy.handlers.api"
    controller_handler: str = "argosy.handlers.controller"

    @property
    def has_addresses(self) -> bool:
        """Whether pretended instances have addresses for gangs (`gangs.rendezvous`), which needs Linux and tasks that
        are processes: all of 127.0.0.0/8 leads to this machine there."""
        return sys.platform == "linux" and self.engine is None

    @property
    def deployed_settings(self) -> Settings:
        """Those of the functions. Members of a gang need addresses."""
        return self.settings if self.has_addresses else self.settings.model_copy(update={"gangs": False})
