"""The user data of a host under a real systemd: does the ECS agent start?

systemd runs as a user's manager in namespaces of its own. The units have the [Unit] sections of AWS, Docker
and cloud-init; each file names its source. The programs are stand-ins, and all paths of the script are below
one folder.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from inference_constructs.ecs.host_start import host_user_data

UNITS = Path(__file__).parent / "host_units"
SYSTEMD = Path("/lib/systemd/systemd")
#: Folders of a host that the script writes to.
HOST_FOLDERS = ("/etc/", "/mnt/data")
STAND_INS = {
    "systemctl": 'exec /usr/bin/systemctl --user "$@"',
    "docker": 'echo "docker $*" >> @FOLDER@/log',
    **dict.fromkeys(
        ("awk", "lsblk", "mkfs.xfs", "mount", "chown", "logger", "iptables", "modprobe", "udevadm"), "exit 0"
    ),
}
#: The manager ends with its namespace. It has settled when user data has ended and no job is left.
START = """\
set -eu
mount -t tmpfs tmpfs /run/systemd
mkdir -p /run/systemd/system
export PATH=@FOLDER@/bin:$PATH HOME=@FOLDER@ XDG_RUNTIME_DIR=@FOLDER@/run SYSTEMD_UNIT_PATH=@FOLDER@/units
unset DBUS_SESSION_BUS_ADDRESS
exec 3>&1 >@FOLDER@/manager 2>&1 </dev/null
@SYSTEMD@ --user --unit=multi-user.target --log-target=console --show-status=no 3>&- &
settled() {
  systemctl is-active --quiet multi-user.target && [ -z "$(systemctl list-jobs --no-legend)" ]
}
until settled; do sleep 0.1; done
for unit in docker ecs cloud-final; do
  echo "$unit=$(systemctl is-active $unit || true)" >&3
done
"""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return the folder of a host with unit files and stand-ins of programs."""
    if not SYSTEMD.exists() or shutil.which("unshare") is None:
        pytest.fail(
            "install the Debian packages systemd and util-linux: /lib/systemd/systemd, unshare", pytrace=False
        )
    for name in ("units", "bin", "etc/docker", "etc/ecs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "run").mkdir(mode=0o700)
    for unit in UNITS.iterdir():
        _write(tmp_path, f"units/{unit.name}", unit.read_text(encoding="utf-8"))
    for name, command in STAND_INS.items():
        _write(tmp_path, f"bin/{name}", f"#!/bin/sh\n{command}\n").chmod(0o755)
    (tmp_path / "log").touch()
    return tmp_path


def test_the_agent_starts_after_the_user_data(host: Path) -> None:
    """It turns red if a stop of Docker also takes the queued start of the agent away: hosts never join."""
    assert _started(host, _script()) == {"docker": "active", "ecs": "active", "cloud-final": "active"}
    lines = (host / "log").read_text(encoding="utf-8").splitlines()
    assert lines == ["docker pull --quiet example.com/engine:1", "agent started"]


def test_a_host_without_its_efa_devices_takes_no_tasks(host: Path) -> None:
    """It turns red if the agent starts where a device is missing: each task that names it would fail."""
    states = _started(host, _script(efa_devices=2))
    assert (states["ecs"], states["cloud-final"]) == ("inactive", "failed")
    assert "agent started" not in (host / "log").read_text(encoding="utf-8")


def _script(*, efa_devices: int = 0) -> str:
    return host_user_data(
        cluster_name="try",
        attributes={"inference-blueprints.pool": "l40s"},
        shared_folders=["/mnt/data/inference-blueprints"],
        images=["example.com/engine:1"],
        instance_store=True,
        gpus=True,
        efa_devices=efa_devices,
    )


def _started(host: Path, script: str) -> dict[str, str]:
    """Boot the host and return the state of its units."""
    for folder in HOST_FOLDERS:
        script = script.replace(folder, f"{host}{folder}")
    script = script.replace(f"{host}/etc/systemd/system", f"{host}/units")
    script = script.replace("/usr/sbin/iptables", f"{host}/bin/iptables")
    _write(host, "user-data", script)
    start = _write(host, "start", START.replace("@SYSTEMD@", str(SYSTEMD)))
    result = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "bash", start],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    manager = host / "manager"
    said = manager.read_text(encoding="utf-8", errors="replace") if manager.exists() else ""
    assert result.returncode == 0, f"{result.stderr}\n{said}"
    return dict(line.split("=") for line in result.stdout.splitlines())


def _write(host: Path, name: str, text: str) -> Path:
    path = host / name
    path.write_text(text.replace("@FOLDER@", str(host)), encoding="utf-8")
    return path
