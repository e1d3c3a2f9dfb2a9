"""The object that the policy process watches: what it is told itself, and Envoy's listeners and clusters.

It is one JSON document, ``{"policy": …, "envoy": {"listeners": …, "clusters": …}}``, so that both change
together. The policy process knows nothing of Envoy's part but writes it, as it is, to the files that Envoy
watches. `policy` is a `DoorConfiguration` with the names of its fields.
"""

from __future__ import annotations

from typing import Final

POLICY: Final = "policy"
ENVOY: Final = "envoy"
#: Key in `ENVOY`, and the file in the folder of Envoy's files. Each is a ``DiscoveryResponse`` of Envoy
#: (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/overview/xds_api), replaced by renaming.
FILES: Final = {"clusters": "clusters.json", "listeners": "listeners.json"}
