"""A listener for Prometheus: Envoy's metrics and the policy's, and nothing else of both.

Envoy's administration listens at a Unix socket only: it can end the process and shows the configuration.
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document, Peer
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_contracts import door_headers
from inference_contracts.door_identities import caller_uri

#: Path of Envoy's own metrics. Those of the policy are at `door_headers.METRICS_PATH`.
ENVOY_METRICS_PATH: Final = "/metrics/envoy"
_ADMINISTRATION: Final = "administration"
_OF_ENVOY: Final = "/stats/prometheus?usedonly"


def administration_cluster(socket: str) -> Document:
    """Return the cluster of Envoy's own administration.

    socket: Its Unix socket.
    """
    return parts.cluster(_ADMINISTRATION, [parts.pipe(socket)])


def metrics_listener(platform: str, places: DoorPlaces, port: int) -> Document:
    """Return the listener.

    The metrics name teams and what they have spent: where the door has a certificate, the listener admits
    Prometheus only, by its own.

    platform: `metadata.name`.
    port: Port at `places.address`.
    """
    own = places.certificate
    peer = Peer(own, (caller_uri(platform, "prometheus"),)) if own else None
    manager = parts.extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="metrics",
        route_config={
            "name": "metrics",
            "virtual_hosts": [
                {
                    "name": "metrics",
                    "domains": ["*"],
                    "routes": [
                        _route(ENVOY_METRICS_PATH, _ADMINISTRATION, _OF_ENVOY),
                        _route(door_headers.METRICS_PATH, door_headers.POLICY_CLUSTER),
                    ],
                }
            ],
        },
        http_filters=[parts.extension("envoy.filters.http.router", "filters.http.router.v3.Router")],
    )
    return parts.listener(
        "metrics",
        parts.socket(places.address, port),
        [manager],
        transport=parts.downstream_tls(own, peer) if own else None,
    )


def _route(path: str, cluster: str, rewritten: str | None = None) -> Document:
    method = {"name": ":method", "string_match": {"exact": "GET"}}
    rewrite = {"path_rewrite": rewritten} if rewritten else {}
    return {"match": {"path": path, "headers": [method]}, "route": {"cluster": cluster, **rewrite}}
