"""Environment variables of the policy process of the front door.

The same program runs in a pod, in a task and on one machine: everything that differs is here. Calls to AWS
take region, credentials and, on one machine, ``AWS_ENDPOINT_URL`` from the environment, as botocore does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

#: What the names of all variables begin with. The rest is the name of the field in capitals.
PREFIX: Final = "DOOR_"
_PORT: Final = 6379
_TRUE: Final = "true"


class DoorSettingsError(Exception):
    """Environment variables are missing or wrong. One message names all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoorSettings:
    """Where one replica's policy process finds what it needs."""

    replica: str
    """Name of the replica, unique in the platform: of the pod or the task."""
    socket: str
    """Unix socket at which it answers Envoy. The folder must exist."""
    configuration: str
    """The configuration that it watches: path of a file, or ``s3://bucket/key``."""
    envoy_folder: str
    """Folder for Envoy's files ``listeners.json`` and ``clusters.json`` (`door_object`)."""
    access_log: str
    """Envoy's access log (`door_log`), which it follows. It renames the file when that is long."""
    state_folder: str
    """Folder for what it must know after a restart: how far it has read the log, and the key with which it
    signs reservations. On the same volume as the log, and for nobody but this process."""
    envoy_admin: str = ""
    """Envoy's administration: path of a Unix socket, or ``host:port``. Empty if the log is never rotated."""
    keys_table: str = ""
    """DynamoDB table of the API keys. Empty if callers have none."""
    ledger_table: str = ""
    """DynamoDB table of the ledger's checkpoints. Empty without checkpoints."""
    store_host: str
    """Host of the ledger's store, Valkey, or the path of its Unix socket."""
    store_port: int = _PORT
    """Its port. Without meaning for a Unix socket."""
    store_cluster: bool = False
    """Whether it is in cluster mode. A serverless cache always is."""
    store_cache: str = ""
    """Name of the ElastiCache Serverless cache: turns on TLS, IAM authentication and cluster mode."""
    store_user: str = ""
    """User of the cache, whose authentication is IAM."""
    store_authority: str = ""
    """File with the certificate of the authority of the cache. Empty for the system's authorities."""
    metrics_address: str = ""
    """``host:port`` at which Prometheus reads metrics over HTTP. Empty if it does not."""
    usage_stream: str = ""
    """Firehose stream of the usage records. Empty if they are not delivered."""
    batch_parameter: str = ""
    """Parameter of AWS Systems Manager with the host name of the batch API. Empty if it is in the
    configuration, or if there is none."""


def read_settings(environment: Mapping[str, str]) -> DoorSettings:
    """Read the settings.

    Raises DoorSettingsError, which names all variables that are missing or wrong.
    """
    values: dict[str, str | int | bool] = {}
    faults: list[str] = []
    for field in fields(DoorSettings):
        name = PREFIX + field.name.upper()
        given = environment.get(name, "")
        is_required = field.name in _REQUIRED
        if not given:
            if is_required:
                faults.append(f"{name}: missing; it must be set")
        elif (wrong := _FORMS.get(field.name)) and not wrong[0].fullmatch(given):
            faults.append(f"{name}: got {given!r}, must be {wrong[1]}")
        else:
            values[field.name] = int(given) if field.name == "store_port" else given
    values["store_cluster"] = values.get("store_cluster") == _TRUE
    if bool(environment.get(f"{PREFIX}STORE_CACHE")) != bool(environment.get(f"{PREFIX}STORE_USER")):
        faults.append(f"{PREFIX}STORE_CACHE and {PREFIX}STORE_USER: a cache needs a user; set both or none")
    if faults:
        raise DoorSettingsError("\n".join(faults))
    return DoorSettings(**values)  # type: ignore[arg-type]  # each was read for its field


def as_environment(settings: DoorSettings) -> dict[str, str]:
    """Return the variables from which `read_settings` reads the same settings."""
    found = {}
    for field in fields(DoorSettings):
        value = getattr(settings, field.name)
        text = (_TRUE if value else "false") if isinstance(value, bool) else str(value)
        if value != field.default:
            found[PREFIX + field.name.upper()] = text
    return found


#: Forms of values that are no free text, and how a message names them.
_FORMS: Final = {
    "store_port": (re.compile("[1-9][0-9]{0,4}"), "a port"),
    "store_cluster": (re.compile("true|false"), "true or false"),
    "metrics_address": (re.compile("[^:]+:[1-9][0-9]{0,4}"), "HOST:PORT"),
}
_REQUIRED: Final = frozenset(
    {"replica", "socket", "configuration", "envoy_folder", "access_log", "state_folder", "store_host"}
)
