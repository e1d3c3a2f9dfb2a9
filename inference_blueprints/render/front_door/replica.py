"""One replica of the front door on a platform: its two programs, their files and their settings.

A pod and a task are the same: the policy process starts first, because Envoy needs the files that it writes
(https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/config/core/v3/config_source.proto: a watched path must
exist), and ends last, because it settles what Envoy has logged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

from inference_blueprints.render.envoy.parts import CertificateFiles, Peer
from inference_blueprints.render.front_door.documents import door_documents, envoy_arguments
from inference_blueprints.render.front_door.places import DoorPlaces, UpstreamPlace
from inference_blueprints.serving.types.front_door import DoorCluster, DoorPlan
from inference_contracts import door_headers, door_identities, door_object
from inference_contracts.door_names import DOOR_PORT, METRICS_PORT, batch_parameter
from inference_contracts.records import dataclass
from inference_contracts.trace_names import HTTP_PORT

#: Folders of a replica: what both programs share, Envoy's log, and what only the policy process knows.
RUN_FOLDER: Final = "/run/door"
LOG_FOLDER: Final = "/var/log/door"
STATE_FOLDER: Final = "/var/lib/door"
POLICY_SOCKET: Final = f"{RUN_FOLDER}/policy.sock"
ADMIN_SOCKET: Final = f"{RUN_FOLDER}/envoy.sock"
_ACCESS_LOG: Final = f"{LOG_FOLDER}/access.log"
#: Longest time that a stream may last after the replica has been told to end, in seconds: the longest
#: deregistration of a load balancer's target.
DRAIN_SECONDS: Final = 3600
#: Share of the replica's processors that Envoy has: it takes about twice as much as the policy process
#: (docs/front-door-envoy.md, "What each part costs").
_ENVOY_SHARE: Final = 2 / 3
#: Memory of the program that keeps the files of the certificate: boto3 takes most of it.
CERTIFICATES_MIB: Final = 128
#: Authorities of the system, for the key sets of issuers and for the batch API: that of Debian, on which the
#: image stands.
_SYSTEM_AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"
#: Where API Gateway answers HTTPS, and the stage of the batch API, which its paths begin with.
_HTTPS_PORT: Final = 443
_BATCH_STAGE: Final = "/prod"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorReferences:
    """What the stacks know of a replica, and a plan does not. All may be references of CloudFormation."""

    configuration: str
    """Address of the object that the policy process watches."""
    keys_table: str
    ledger_table: str
    """`keys_table`, `ledger_table`: Tables of API keys and of the ledger's checkpoints."""
    store_host: str
    store_cache: str
    store_user: str
    """`store_host`, `store_cache`, `store_user`: Endpoint of the ledger's store, its name, and its user."""
    usage_stream: str
    """Stream of the usage records."""
    certificate_secret: str
    """ARN of the secret with the certificate of the door."""
    region: str
    """Region of all of them."""


def policy_command() -> list[str]:
    """Return the words that start the policy process."""
    return ["python3", "-m", "front_door"]


def policy_environment(plan: DoorPlan, references: DoorReferences) -> dict[str, str]:
    """Return the variables of the policy process, without the name of the replica (``DOOR_REPLICA``)."""
    return {
        "AWS_DEFAULT_REGION": references.region,
        "DOOR_ACCESS_LOG": _ACCESS_LOG,
        **({"DOOR_BATCH_PARAMETER": batch_parameter(plan.configuration.platform)} if plan.has_batch else {}),
        "DOOR_CONFIGURATION": references.configuration,
        "DOOR_ENVOY_ADMIN": ADMIN_SOCKET,
        "DOOR_ENVOY_FOLDER": RUN_FOLDER,
        **({"DOOR_KEYS_TABLE": references.keys_table} if plan.configuration.reads_keys else {}),
        "DOOR_LEDGER_TABLE": references.ledger_table,
        "DOOR_SOCKET": POLICY_SOCKET,
        "DOOR_STATE_FOLDER": STATE_FOLDER,
        "DOOR_STORE_CACHE": references.store_cache,
        "DOOR_STORE_HOST": references.store_host,
        "DOOR_STORE_USER": references.store_user,
        "DOOR_USAGE_STREAM": references.usage_stream,
    }


def policy_check() -> list[str]:
    """Return the words of the check whether the policy process answers, which ends with 0 if it does."""
    return ["python3", "-m", "front_door.policy_check", POLICY_SOCKET, door_headers.READY_PATH]


def certificates_command() -> list[str]:
    """Return the words that start the program that keeps the files of the certificate."""
    return ["python3", "-m", "certificate_files"]


def certificates_environment(references: DoorReferences) -> dict[str, str]:
    """Return its variables."""
    return {
        "AWS_DEFAULT_REGION": references.region,
        door_identities.FOLDER_VARIABLE: door_identities.FOLDER,
        door_identities.SECRET_VARIABLE: references.certificate_secret,
    }


def certificates_check() -> list[str]:
    """Return the words of the check whether the files are there."""
    return ["test", "-e", f"{door_identities.FOLDER}/{door_identities.READY_LINK}"]


def envoy_command(plan: DoorPlan, places: DoorPlaces) -> list[str]:
    """Return the words that start Envoy. What changes with models, weights and budgets is not in them."""
    return [
        "envoy",
        *envoy_arguments(door_documents(plan, places).bootstrap),
        "--concurrency",
        str(max(1, round(plan.vcpus * _ENVOY_SHARE))),
        # Nothing takes over its listeners: a new replica stands beside it.
        "--disable-hot-restart",
        "--log-level",
        "warning",
        "--log-format",
        "%Y-%m-%dT%T.%e %l %n %v",
    ]


def drain_command() -> list[str]:
    """Return the words of the program that lets Envoy's requests end."""
    return ["python3", "-m", "front_door.drain", ADMIN_SOCKET, str(DRAIN_SECONDS)]


def watched_document(plan: DoorPlan, places: DoorPlaces) -> dict[str, Any]:
    """Return the object that the policy process watches (`door_object`)."""
    documents = door_documents(plan, places)
    return {
        door_object.POLICY: json.loads(plan.configuration.to_json()),
        door_object.ENVOY: {"listeners": documents.listeners, "clusters": documents.clusters},
    }


def door_places(plan: DoorPlan, host_of: Callable[[DoorCluster], str], traces_host: str) -> DoorPlaces:
    """Return the addresses and files of a replica.

    host_of: Returns the host name of the entry points of a deployment, which has the address of each.
    traces_host: Host name of what receives spans, if there are any.
    """
    own = CertificateFiles(door_identities.FOLDER)
    platform = plan.configuration.platform
    return DoorPlaces(
        # Load balancers and kubelet reach the address of the pod or the task.
        address="0.0.0.0",  # noqa: S104
        port=DOOR_PORT,
        certificate=own,
        files=RUN_FOLDER,
        policy_socket=POLICY_SOCKET,
        admin_socket=ADMIN_SOCKET,
        access_log=_ACCESS_LOG,
        clusters={
            each.name: UpstreamPlace(
                host=host_of(each),
                port=each.port,
                peer=Peer(own, (door_identities.server_uri(platform, each.name),)),
                own=own,
            )
            for each in plan.clusters
        },
        trusted=_SYSTEM_AUTHORITIES,
        # Envoy compares a DNS name with the wildcard of API Gateway's certificate, `*.execute-api.<region>…`.
        batch=UpstreamPlace(
            door_object.BATCH_HOST,
            _HTTPS_PORT,
            peer=Peer(_SYSTEM_AUTHORITIES, (door_object.BATCH_HOST,)),
        )
        if plan.has_batch
        else None,
        batch_prefix=_BATCH_STAGE,
        traces=UpstreamPlace(traces_host, HTTP_PORT),
        # The load balancer adds the address of its caller.
        trusted_hops=1,
        metrics_port=METRICS_PORT,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramSize:
    """Processors and memory of one of the two programs."""

    cpu_units: int
    """1024 for a vCPU."""
    memory_mib: int


def envoy_size(plan: DoorPlan) -> ProgramSize:
    """Return the size of Envoy: it holds the bodies of the requests that it reads, so it has more memory."""
    return ProgramSize(
        cpu_units=math.ceil(plan.vcpus * _ENVOY_SHARE * 1024), memory_mib=plan.memory_mib * 2 // 3
    )


def policy_size(plan: DoorPlan) -> ProgramSize:
    """Return the size of the policy process: what Envoy leaves."""
    envoy = envoy_size(plan)
    return ProgramSize(
        cpu_units=math.ceil(plan.vcpus * 1024) - envoy.cpu_units,
        memory_mib=plan.memory_mib - envoy.memory_mib,
    )


def fewest_replicas(plan: DoorPlan) -> int:
    """Return the number of replicas without load. The plan's number is the largest.

    Two, so that one may be replaced; and half of the plan's, because a load that doubles within a minute is
    ordinary, and a new replica takes that long to start.
    """
    return max(2, math.ceil(plan.replicas / 2))
