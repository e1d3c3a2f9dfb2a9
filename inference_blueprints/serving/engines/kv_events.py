"""Events that a worker publishes about its KV cache, for Dynamo's router."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

#: Settings of the publisher. Engines bind to every address if the host is "*". Dynamo's publisher in the same
#: pod connects over loopback.
KV_EVENTS: Mapping[str, str] = MappingProxyType(
    {"publisher": "zmq", "topic": "kv-events", "endpoint": "tcp://*:20080"}
)
