"""Which disk holds an instance's images: the very script that ships, with stand-ins for the disks and their tools."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from argosy.settings.settings import load_settings
from stacks.boot import user_data

SCRIPT = Path(__file__).resolve().parents[3] / "stacks" / "user_data" / "argosy-boot.sh"
OWN, EBS = "Amazon EC2 NVMe Instance Storage        \n", "Amazon Elastic Block Store              \n"
TOOLS = {  # what a disk holds is in a file of its name: the label, or "?" for anything else
    "blkid": """for last; do :; done
held=$(cat "$HELD/${last##*/}" 2>/dev/null) || exit 2
case "$*" in *LABEL*) [ "$held" = "?" ] || echo "$held" ;; *) echo "$held" ;; esac""",
    "mkfs.xfs": """[ -e "$HELD/refuses" ] && { echo "cannot open the disk"; exit 1; }
for last; do :; done
echo argosy-store >"$HELD/${last##*/}"; echo "made ${last##*/}" >>$HELD/log""",
    "mountpoint": """grep -q mounted $HELD/log""",
    "mount": """echo "mounted $3 on $4" >>$HELD/log""",
}
pytestmark = pytest.mark.slow  # it starts shells


@dataclass
class Machine:
    """An instance before Docker's first start."""

    folder: Path

    @property
    def store(self) -> str:
        return str(self.folder / "opt" / "store")

    @property
    def daemon(self) -> Path:
        return self.folder / "docker" / "daemon.json"

    def disk(self, name: str, model: str, gib: int, held: str = "") -> None:
        (self.folder / "block" / name / "device").mkdir(parents=True)
        (self.folder / "block" / name / "device" / "model").write_text(model)
        (self.folder / "block" / name / "size").write_text(f"{gib * 2_097_152}\n")
        if held:
            (self.folder / "held" / name).write_text(held)

    def boot(self, *words: str) -> str:
        """What the console says."""
        console = self.folder / "console"
        console.unlink(missing_ok=True)
        environment = {
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "HELD": str(self.folder / "held"),
            "ARGOSY_FOLDER": str(self.folder / "opt"),
            "ARGOSY_DAEMON": str(self.daemon),
            "ARGOSY_DISKS": str(self.folder / "block"),
            "ARGOSY_CONSOLE": str(console),
            "SERVICE_RESULT": "exit-code",
        }
        subprocess.run(["bash", str(SCRIPT), *words], env=environment, capture_output=True, check=False, timeout=60)
        return console.read_text() if console.exists() else ""

    @property
    def log(self) -> list[str]:
        found = self.folder / "held" / "log"
        return found.read_text().splitlines() if found.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for folder in ("bin", "held", "block", "docker"):
        (tmp_path / folder).mkdir()
    for name, text in TOOLS.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    made = Machine(tmp_path)
    made.disk("nvme0n1", EBS, 150)
    return made


def test_images_go_to_the_first_disk_of_the_machine_itself(machine: Machine) -> None:
    machine.disk("nvme1n1", OWN, 232)
    machine.disk("nvme2n1", OWN, 232)
    machine.daemon.write_text('{"log-level": "warn"}')
    assert "images are on the instance storage of 232 GiB" in machine.boot("store", "150")
    assert machine.log == ["made nvme1n1", f"mounted /dev/nvme1n1 on {machine.store}"]
    assert json.loads(machine.daemon.read_text()) == {"log-level": "warn", "data-root": f"{machine.store}/docker"}


def test_a_reboot_keeps_the_images(machine: Machine) -> None:
    machine.disk("nvme1n1", OWN, 232, held="argosy-store")
    machine.boot("store", "150")
    assert machine.log == [f"mounted /dev/nvme1n1 on {machine.store}"]
    assert "images are on" in machine.boot("store", "150")  # once more in the same boot
    assert len(machine.log) == 1


@pytest.mark.parametrize(
    ("gib", "held", "daemon", "why"),
    [
        (46, "", "", "of 46 GiB is not used: the volume has 60 GiB"),
        (232, "?", "", "something else is on it"),
        (232, "", '{"data-root": "/mnt/mine"}', "Docker has a data-root already"),
    ],
)
def test_a_disk_that_is_too_small_or_not_ours_stays_as_it_is(
    machine: Machine, gib: int, held: str, daemon: str, why: str
) -> None:
    machine.disk("nvme1n1", OWN, gib, held)
    if daemon:
        machine.daemon.write_text(daemon)
    assert why in machine.boot("store", "60")
    assert machine.log == []
    assert (machine.daemon.read_text() if daemon else machine.daemon.exists()) == (daemon or False)


def test_a_disk_that_cannot_be_formatted_leaves_docker_on_the_volume(machine: Machine) -> None:
    machine.disk("nvme1n1", OWN, 232)
    (machine.folder / "held" / "refuses").touch()
    assert "is not used: cannot open the disk" in machine.boot("store", "150")
    assert not machine.daemon.exists()


def test_an_instance_without_such_a_disk_says_nothing(machine: Machine) -> None:
    assert machine.boot("store", "150") == ""
    assert not machine.daemon.exists()


def test_a_docker_that_does_not_start_on_it_starts_on_the_volume(machine: Machine) -> None:
    machine.disk("nvme1n1", OWN, 232)
    machine.boot("store", "150")
    machine.boot("undo")
    assert json.loads(machine.daemon.read_text()) == {}


def test_the_unit_names_the_size_of_the_volume_unless_the_settings_switch_it_off() -> None:
    step = "ExecStartPre=-/usr/local/sbin/argosy-boot store"
    assert f"{step} 150\n" in user_data(load_settings({}), "g5.xlarge", "x")
    assert f"{step} 80\n" in user_data(load_settings({"diskGiB": {"c5*": 80}}), "c5d.large", "x")
    assert step not in user_data(load_settings({"imagesOnInstanceStorage": False}), "g5.xlarge", "x")
