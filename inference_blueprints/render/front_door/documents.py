"""Envoy's part of the front door, as documents.

`bootstrap` is the file that Envoy starts with. The other two are what the policy process writes into
`DoorPlaces.files` by a rename, under the names of `door_object.FILES`: Envoy then reads them again.
"""

from __future__ import annotations

import json
from typing import Any, Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.connections import door_listener
from inference_blueprints.render.front_door.metrics import administration_cluster, metrics_listener
from inference_blueprints.render.front_door.overload import overload_manager
from inference_blueprints.render.front_door.places import DoorPlaces, UpstreamPlace
from inference_blueprints.render.front_door.routes import BATCH_CLUSTER
from inference_blueprints.render.front_door.tokens import key_clusters
from inference_blueprints.render.front_door.tracing import traces_cluster
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts import door_headers
from inference_contracts.door_object import FILES
from inference_contracts.records import dataclass

_FLUSH_MILLISECONDS: Final = 200
_DRAIN_SECONDS: Final = 3600


@dataclass(frozen=True, slots=True)
class DoorDocuments:
    """What Envoy reads."""

    bootstrap: dict[str, Any]
    listeners: dict[str, Any]
    clusters: dict[str, Any]


def door_documents(plan: DoorPlan, places: DoorPlaces) -> DoorDocuments:
    """Return Envoy's configuration of one replica.

    Raises KeyError if `places` does not say where a cluster of the plan is, and ValueError if keys of
    an issuer are fetched and `places` trusts nobody.
    """
    return DoorDocuments(
        bootstrap=_bootstrap(plan, places),
        listeners=parts.resources("listener.v3.Listener", [door_listener(plan, places)]),
        clusters=parts.resources(
            "cluster.v3.Cluster",
            [
                *(_cluster(each.name, places.clusters[each.name]) for each in plan.clusters),
                *key_clusters(plan.key_sets, places.trusted),
                *([_cluster(BATCH_CLUSTER, places.batch)] if places.batch else []),
                *traces_cluster(plan, places),
            ],
        ),
    )


def envoy_arguments(bootstrap: str | Document) -> tuple[str, ...]:
    """Return the arguments of Envoy.

    bootstrap: `DoorDocuments.bootstrap`, or the path of a file with it.
    """
    return (
        *(
            ("--config-path", bootstrap)
            if isinstance(bootstrap, str)
            else ("--config-yaml", json.dumps(bootstrap, sort_keys=True, separators=(",", ":")))
        ),
        # Lines of the access log settle reservations: Envoy's default keeps them for ten seconds.
        *("--file-flush-interval-msec", str(_FLUSH_MILLISECONDS)),
        # What listens and is replaced ends its connections after this time; streams are given as long.
        *("--drain-time-s", str(_DRAIN_SECONDS), "--drain-strategy", "immediate"),
    )


def _bootstrap(plan: DoorPlan, places: DoorPlaces) -> Document:
    return {
        "node": {"id": "door", "cluster": plan.configuration.platform},
        "admin": {"address": parts.pipe(places.admin_socket)},
        "dynamic_resources": {
            "lds_config": parts.watched(f"{places.files}/{FILES['listeners']}", places.files),
            "cds_config": parts.watched(f"{places.files}/{FILES['clusters']}", places.files),
        },
        "overload_manager": overload_manager(plan.memory_mib),
        "static_resources": {
            "clusters": [
                parts.cluster(door_headers.POLICY_CLUSTER, [parts.pipe(places.policy_socket)]),
                administration_cluster(places.admin_socket),
            ],
            "listeners": [metrics_listener(plan.configuration.platform, places, places.metrics_port)]
            if places.metrics_port
            else [],
        },
    }


def _cluster(name: str, place: UpstreamPlace) -> Document:
    secured = (
        parts.upstream_tls(place.peer, place.server_name or place.host, place.own) if place.peer else None
    )
    return parts.cluster(name, [parts.socket(place.host, place.port)], transport=secured)
