"""The object that the policy process watches: what it is told itself, and Envoy's listeners and clusters.

It is one JSON document, ``{"policy": …, "envoy": {"listeners": …, "clusters": …}}``, so that both change
together. The policy process knows nothing of Envoy's part but writes it, as it is, to the files that Envoy
watches. `policy` is a `DoorConfiguration` with the names of its fields.

With batch, `BATCH_HOST` stands where the host name of the batch API belongs. That API is deployed after the
front door, so replicas read its name from a parameter (`door_names.batch_parameter`).
"""

from __future__ import annotations

from typing import Final

POLICY: Final = "policy"
ENVOY: Final = "envoy"
#: Key in `ENVOY`, and the file in the folder of Envoy's files. Each is a ``DiscoveryResponse`` of Envoy
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/overview/xds_api), replaced by renaming.
FILES: Final = {"clusters": "clusters.json", "listeners": "listeners.json"}
#: Stands for the host name of the batch API until it is known. No server has a name like this (RFC 6761,
#: 6.4), so Envoy answers 503 until then.
BATCH_HOST: Final = "batch-api.invalid"
