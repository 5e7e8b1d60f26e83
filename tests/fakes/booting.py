"""The boot of an instance under a real systemd, in separate namespaces.

cloud-init's two stages, Docker, the ECS agent and the network are units in the same order as on AWS; their programs are
scripts. systemd, the shell, the user data and its units are real: /etc, /usr/local, /opt, /var/log and /var/lib are
layers over this machine's, kept for the next boot.
"""

from __future__ import annotations

import email
import functools
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SYSTEMD = "/lib/systemd/systemd"
LAYERS = ("/etc", "/usr/local", "/opt", "/var/log", "/var/lib")
MOUNTS = "\n".join(
    f"mkdir -p {{folder}}/upper{path} {{folder}}/work{path}; mount -t overlay overlay "
    f"-o lowerdir={path},upperdir={{folder}}/upper{path},workdir={{folder}}/work{path} {path}"
    for path in LAYERS
)
# A user's systemd needs no control groups of its own, and believes /run/systemd/system that it may run.
BOOT = f"""set -e
{MOUNTS}
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/user
touch {{folder}}/console
mount --bind {{folder}}/console /dev/console
mkdir -p /etc/ecs /etc/systemd/system /usr/local/sbin /usr/local/bin
cp {{folder}}/bin/* /usr/local/bin/
cp -r {{folder}}/units/. /etc/systemd/system/
export XDG_RUNTIME_DIR=/run/user HOME={{folder}} XDG_CONFIG_HOME={{folder}}/config
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export SYSTEMD_UNIT_PATH=/etc/systemd/system DBUS_SESSION_BUS_ADDRESS=
{SYSTEMD} --user --log-target=console >>{{folder}}/systemd 2>&1 &
for try in $(seq 400); do
    /usr/bin/sleep 0.05
    [ -e {{folder}}/watched ] || continue
    /usr/bin/systemctl --user list-jobs --no-legend | grep -q . || exit 0
done
/usr/bin/systemctl --user list-jobs --no-legend
exit 9
"""
PROGRAMS = {
    "systemctl": 'exec /usr/bin/systemctl --user "$@"',
    # The first boot runs the boot script, every boot the boothook.
    "cloud-init": '[ ! -e $WORLD/$1 ] || { echo "$1" >>$WORLD/log; bash $WORLD/$1 >>$WORLD/output 2>&1; }',
    "systemd-run": 'exec /usr/bin/systemd-run --user "$@"',
    "shutdown": 'echo "shutdown $*" >>$WORLD/log; [ "$*" != "-h now" ] || watched',
    "docker": """case "$*" in
"info --format {{.InitBinary}}") exec cat /run/docker 2>/dev/null ;;
pull*) [ -e /run/docker ] && echo "docker pulls $3" >>$WORLD/log ;;
*RepoDigests*) echo "$5@$(cat $WORLD/digest)" ;;
*Arch*) echo arm64 ;;
*) exit 1 ;;
esac""",
    "dockerd": """trap 'rm -f /run/docker; exit 0' TERM
init=$(sed -n 's/.*"init-path": "\\(.*\\)".*/\\1/p' /etc/docker/daemon.json 2>/dev/null)
echo "docker starts with ${init:-docker-init}" >>$WORLD/log
[ -z "$init" ] || [ ! -e $WORLD/refuses ] || exit 1
echo "${init:-docker-init}" >/run/docker
systemd-notify --ready
while :; do /usr/bin/sleep 0.05; done""",
    "agent": """echo "agent starts" >>$WORLD/log
cp /etc/ecs/ecs.config $WORLD/agent
[ -e $WORLD/mute ] || echo '{"Cluster": "argosy", "ContainerInstanceArn": "arn:of:host"}' >/run/agent
mkdir -p /var/log/ecs; echo 'level=error msg="AccessDeniedException: no"' >/var/log/ecs/ecs-agent.log
exec /usr/bin/sleep infinity""",
    "curl": """for last; do :; done
case "$last" in http://127.0.0.1:51678/*) exec cat /run/agent ;; *) exec /usr/bin/curl "$@" ;; esac""",
    "sleep": "exit 0",
    "watched": "touch $WORLD/watched",
    "iptables": "[ ! -e $WORLD/no-firewall ]",
    "ip6tables": "[ ! -e $WORLD/no-firewall ]",
}
STAGE = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/local/bin/cloud-init {part}\n[Unit]\n"
UNITS = {
    "basic.target": "[Unit]\nDescription=b\n",
    "shutdown.target": "[Unit]\nDescription=s\n",
    "argosy-watch.service.d/watched.conf": "[Service]\nExecStopPost=/usr/local/bin/watched\n",
    "multi-user.target": "[Unit]\nDescription=m\n",
    "network-online.target": "[Unit]\nAfter=cloud-init.service\n",
    "default.target": "[Unit]\nWants=cloud-init.service network-online.target cloud-final.service ecs.service\n",
    "cloud-init.service": STAGE.format(part="boothook") + "Before=network-online.target\n",
    "cloud-final.service": STAGE.format(part="script") + "After=network-online.target cloud-init.service\n",
    "docker.service": """[Unit]
{order}
[Service]
Type=notify
NotifyAccess=all
ExecStart=/usr/local/bin/dockerd
Restart=on-failure
RestartSec=100ms
""",
    # As `packaging/amazon-linux-ami-integrated/ecs.service` of aws/amazon-ecs-agent orders it.
    "ecs.service": """[Unit]
Wants=docker.service
PartOf=docker.service
After=docker.service
After=cloud-final.service
[Service]
Restart=on-failure
RestartSec=200ms
EnvironmentFile=-/etc/ecs/ecs.config
ExecStartPre=/bin/bash -c 'if [ $(systemctl is-active docker) != "active" ]; then exit 1; fi'
ExecStart=/usr/local/bin/agent
""",
}
ONLINE = "Wants=network-online.target\nAfter=network-online.target"
# When Docker starts: what authors disagree about, and a Docker that waits for nothing at all.
DOCKER = {
    "before the boot script": ONLINE,
    "after the boot script": f"{ONLINE}\nAfter=cloud-final.service",
    "before everything": "DefaultDependencies=no\nBefore=cloud-init.service",
}


@functools.cache
def why_not() -> str:
    """Why no instance can be booted here; empty if one can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "namespaces need root on Linux"
    if not Path(SYSTEMD).exists() or shutil.which("unshare") is None:
        return "systemd is not installed"
    probe = "d=$(mktemp -d) && mount -t tmpfs tmpfs $d && mkdir $d/u $d/w && mount -t overlay overlay -o "
    probe += "lowerdir=/etc,upperdir=$d/u,workdir=$d/w /etc && test -e /dev/console"
    tried = subprocess.run(_apart(probe), capture_output=True, text=True, check=False)
    return "" if tried.returncode == 0 else f"this machine allows no mounts in a namespace: {tried.stderr.strip()}"


def _apart(script: str) -> list[str]:
    return ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "bash", "-c", script]


@dataclass
class Instance:
    """One instance and its boots. `log`: what started, in order."""

    folder: Path
    user_data: str
    metadata: str
    docker: str = "before the boot script"
    changes: dict[str, str] = field(default_factory=dict)  # of units

    def boot(self, again: bool = False) -> Instance:
        """Until the agent has joined, or the instance has said why not."""
        for name in ("bin", "config/systemd"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        if not (self.folder / "config/systemd/user").is_symlink():
            (self.folder / "config/systemd/user").symlink_to("/etc/systemd/system")
        for name, text in PROGRAMS.items():
            program = self.folder / "bin" / name
            program.write_text(f"#!/bin/bash\n{text}\n")
            program.chmod(0o755)
        for name, text in {**UNITS, **self.changes}.items():
            unit = self.folder / "units" / name
            unit.parent.mkdir(parents=True, exist_ok=True)
            unit.write_text(text.format(order=DOCKER[self.docker]))
        read = email.message_from_string(self.user_data)
        boothook, script = (str(each.get_payload()) for each in read.walk() if not each.is_multipart())
        parts = {"boothook": boothook, "script": script}
        for name, part in parts.items():
            (self.folder / name).write_text(part)
        if again:
            (self.folder / "script").unlink()
        for name in ("log", "agent", "console", "watched"):
            (self.folder / name).unlink(missing_ok=True)
        environment = {**os.environ, "WORLD": str(self.folder), "ARGOSY_METADATA": self.metadata}
        words = _apart(BOOT.format(folder=self.folder))
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (done.stdout, done.stderr, (self.folder / "systemd").read_text(), self.console)
        return self

    @property
    def log(self) -> list[str]:
        return (self.folder / "log").read_text().splitlines()

    @property
    def console(self) -> list[str]:
        """What `argosy boot` said there."""
        said = (self.folder / "console").read_text().splitlines()
        return [line.removeprefix("argosy boot: ") for line in said if line.startswith("argosy boot: ")]

    @property
    def attributes(self) -> list[str]:
        """The attributes with which the agent started; raises FileNotFoundError without an agent."""
        lines = (self.folder / "agent").read_text().splitlines()
        return [line.partition("=")[2] for line in lines if line.startswith("ECS_INSTANCE_ATTRIBUTES=")]

    def read(self, path: str) -> str | None:
        """A file of the instance."""
        found = self.folder / f"upper{path}"
        return found.read_text() if found.is_file() else None
