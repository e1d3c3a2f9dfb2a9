"""User data of the hosts of an Auto Scaling group: Amazon Linux 2023 for ECS, with or without NVIDIA GPUs.

Files and services in comments are those of the Amazon ECS-optimized AMI
(https://github.com/aws/amazon-ecs-ami, release 20260820), and variables those of the Amazon ECS agent
(https://github.com/aws/amazon-ecs-agent, README, "Environment Variables").
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence

#: Folder of the disk that holds images and what workers share: the NVMe of the instance, or a folder on EBS.
DATA_FOLDER = "/mnt/data"
#: Memory of a host that ECS does not give to tasks, in MiB. The serving plan leaves more than that to it.
RESERVED_MEMORY_MIB = 1024
#: Longest time without progress after which the agent gives up a pull. Engines have layers of several GiB.
_PULL_INACTIVITY = "15m"

#: With several NVMe disks, one array holds everything, as on EKS (``instanceStorePolicy: RAID0``).
_INSTANCE_STORE = f"""\
disks=$(lsblk --nodeps --noheadings --paths --output NAME,MODEL | awk '/Instance Storage/ {{print $1}}')
count=$(echo "$disks" | grep --count . || true)
if [ "$count" -gt 1 ]; then
  command -v mdadm || dnf install --assumeyes mdadm
  mdadm --create /dev/md0 --level=0 --raid-devices="$count" $disks
  disk=/dev/md0
else
  disk=$disks
fi
if [ -n "$disk" ]; then
  mkfs.xfs -f -L data "$disk"
  echo "LABEL=data {DATA_FOLDER} xfs defaults,noatime,nofail 0 2" >> /etc/fstab
  mount {DATA_FOLDER}
fi
"""

#: A task names each device, and Docker starts no container with a device that the host does not have.
_EFA_DEVICES = """\
modprobe --all efa ib_uverbs
udevadm settle
found=$(find /dev/infiniband -name 'uverbs*' | wc --lines)
if [ "$found" -lt {count} ]; then
  echo "this host has $found of {count} EFA devices and does not join the cluster" >&2
  exit 1
fi
"""

#: Containers in host mode share the host's network, so the hop limit of its metadata does not keep them from
#: the host's credentials. A unit sets the rule again after a restart. The agent itself runs as root.
_METADATA_UNIT = """\
cat > /etc/systemd/system/metadata-for-root.service <<'UNIT'
[Unit]
Description=Only root reaches the metadata of the instance
Before=ecs.service
[Service]
Type=oneshot
RemainAfterExit=true
ExecStart=/usr/sbin/iptables -I OUTPUT -d 169.254.169.254 -m owner ! --uid-owner root -j REJECT
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload
systemctl enable --now metadata-for-root.service
"""


def host_user_data(
    *,
    cluster_name: str,
    attributes: Mapping[str, str],
    shared_folders: Sequence[str],
    images: Sequence[str],
    instance_store: bool,
    gpus: bool,
    efa_devices: int = 0,
) -> str:
    """Return the script that a host runs at its first start.

    The ECS agent starts after it (``After=cloud-final.service`` of ecs.service), so a host gets its first
    task when its images are there. The script itself asks for that start: it stops Docker, and the stop takes
    the start that systemd had planned away (``PartOf=docker.service`` of ecs.service, aws/amazon-ecs-agent,
    packaging/amazon-linux-ami-integrated). So a host whose script fails takes no tasks.

    Parameters
    ----------
    cluster_name
        Cluster that the host joins.
    attributes
        Attributes of the container instance, for placement.
    shared_folders
        Folders that the workers of a host share.
    images
        Images that the host pulls before it joins. Others are pulled when a task needs them.
    instance_store
        Whether the host has NVMe, which holds the images and the shared folder.
    gpus
        Whether the host has GPUs.
    efa_devices
        Number of EFA devices that tasks name. A host with fewer does not join.
    """
    folders = shlex.join(shared_folders)
    script = [
        "#!/bin/bash",
        "set -o errexit -o nounset -o pipefail",
        "systemctl stop docker.socket docker",
        *([_EFA_DEVICES.format(count=efa_devices).rstrip()] if efa_devices else []),
        f"mkdir --parents {DATA_FOLDER}",
        *([_INSTANCE_STORE.rstrip()] if instance_store else []),
        f"mkdir --parents {DATA_FOLDER}/docker {folders}",
        # Workers run as user 1000, group 0.
        f"chown 1000:0 {folders}",
        f"chmod 0770 {folders}",
        _file("/etc/docker/daemon.json", json.dumps(_docker(gpus=gpus), indent=2)),
        _file("/etc/ecs/ecs.config", "\n".join(_agent(cluster_name, attributes, gpus=gpus))),
        _METADATA_UNIT.rstrip(),
        "systemctl start docker",
        # A registry that does not answer must not keep the host from joining: its tasks pull again.
        *(
            f"docker pull --quiet {shlex.quote(image)} || logger --tag images {shlex.quote(image)}"
            for image in images
        ),
        # The agent waits for the end of this script, so the script must not wait for the agent (Amazon ECS
        # Developer Guide, "Bootstrapping Amazon ECS Linux container instances to pass data").
        "systemctl start --no-block ecs",
    ]
    return "\n".join(script) + "\n"


def _docker(*, gpus: bool) -> dict[str, object]:
    """Return Docker's settings. The AMI adds the runtime ``nvidia`` (``/etc/docker-runtimes.d``).

    Containers without a GPU of their own, such as the exporter of GPU metrics, see GPUs only with NVIDIA's
    runtime as the default (Amazon ECS Developer Guide, "Task definitions for GPU workloads": tasks without
    GPU requirements use the default runtime).
    """
    return {
        "data-root": f"{DATA_FOLDER}/docker",
        **({"default-runtime": "nvidia"} if gpus else {}),
        "live-restore": True,
        "max-concurrent-downloads": 20,
    }


def _agent(cluster_name: str, attributes: Mapping[str, str], *, gpus: bool) -> list[str]:
    """Return the settings of the ECS agent."""
    settings = {
        "ECS_CLUSTER": cluster_name,
        "ECS_AWSVPC_BLOCK_IMDS": "true",
        "ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE": "true",
        **({"ECS_ENABLE_GPU_SUPPORT": "true"} if gpus else {}),
        "ECS_ENABLE_SPOT_INSTANCE_DRAINING": "true",
        "ECS_ENABLE_TASK_IAM_ROLE": "true",
        "ECS_ENABLE_TASK_IAM_ROLE_NETWORK_HOST": "true",
        "ECS_IMAGE_PULL_BEHAVIOR": "prefer-cached",
        "ECS_IMAGE_PULL_INACTIVITY_TIMEOUT": _PULL_INACTIVITY,
        "ECS_INSTANCE_ATTRIBUTES": json.dumps(dict(attributes), separators=(",", ":")),
        "ECS_RESERVED_MEMORY": str(RESERVED_MEMORY_MIB),
    }
    return [f"{name}={value}" for name, value in settings.items()]


def _file(path: str, text: str) -> str:
    """Return the commands that write a file."""
    return f"cat > {path} <<'TEXT'\n{text}\nTEXT"
