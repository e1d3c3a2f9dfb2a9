"""How a member of the discovery store runs: the same in the stack and in the tests on real etcd."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from inference_contracts.ecs_names import DISCOVERY_PORT

#: Ports on which members reach each other, and on which a member tells on loopback that it lives.
DISCOVERY_PEER_PORT: Final = 2380
DISCOVERY_LIVENESS_PORT: Final = 2381
#: A member lives if it can read its own data. Unlike ``/readyz`` this needs no other member, so the first
#: one of a new store is healthy before the second one starts (etcd documentation, "Monitoring etcd").
DISCOVERY_LIVENESS_PATH: Final = "/livez"
#: Common name of the members' certificate. Clients have the name of their deployment, so none can pretend to
#: be a member.
MEMBER_COMMON_NAME: Final = "member"
#: Files of a member's certificates, by their key in the secret.
MEMBER_FILES: Final = {"ca": "ca.crt", "cert": "member.crt", "key": "member.key"}

# The round trip includes writing to a network file system, so heartbeat and election take longer than by
# default; an election takes ten heartbeats (etcd documentation, "Tuning").
_HEARTBEAT_MILLISECONDS = 500
_ELECTION_MILLISECONDS = 5_000
# A worker writes some KiB, so this is far above what a fleet needs (default: 2 GiB).
_QUOTA_BYTES = 256 * 2**20


def member_arguments(
    hosts: Sequence[str],
    index: int,
    *,
    data: PurePath,
    certificates: PurePath,
    listen: str = "0.0.0.0",  # noqa: S104 - a task with a network interface of its own
    loopback: str = "127.0.0.1",
) -> list[str]:
    """Return the arguments of etcd for one member.

    hosts: Names of all members in the network.
    index: Position of this member in `hosts`.
    data: Folder of its data. A member that starts with the data of its predecessor takes its place.
    certificates: Folder of `MEMBER_FILES`.
    listen, loopback: Addresses on which it answers others, and on which it tells that it lives.
    """
    authority, certificate, key = (certificates / MEMBER_FILES[name] for name in ("ca", "cert", "key"))
    peers = [f"https://{host}:{DISCOVERY_PEER_PORT}" for host in hosts]
    options = {
        "name": f"discovery-{index}",
        "data-dir": data,
        "listen-client-urls": f"https://{listen}:{DISCOVERY_PORT}",
        "advertise-client-urls": f"https://{hosts[index]}:{DISCOVERY_PORT}",
        "listen-peer-urls": f"https://{listen}:{DISCOVERY_PEER_PORT}",
        "initial-advertise-peer-urls": peers[index],
        "initial-cluster": ",".join(f"discovery-{place}={peer}" for place, peer in enumerate(peers)),
        "initial-cluster-state": "new",
        "listen-metrics-urls": f"http://{loopback}:{DISCOVERY_LIVENESS_PORT}",
        "cert-file": certificate,
        "key-file": key,
        "trusted-ca-file": authority,
        "client-cert-auth": "true",
        "peer-cert-file": certificate,
        "peer-key-file": key,
        "peer-trusted-ca-file": authority,
        "peer-client-cert-auth": "true",
        "peer-cert-allowed-cn": MEMBER_COMMON_NAME,
        # Else a member must come from an address that its name resolves to, and a new task's name may be late
        # (etcd documentation, "Transport security model"). The authority and the common name identify it.
        "peer-skip-client-san-verification": "true",
        "heartbeat-interval": _HEARTBEAT_MILLISECONDS,
        "election-timeout": _ELECTION_MILLISECONDS,
        "auto-compaction-retention": "1h",
        "quota-backend-bytes": _QUOTA_BYTES,
        "log-level": "warn",
    }
    return [f"--{name}={value}" for name, value in options.items()]
