"""Who may write what in the discovery store of ECS: a user per deployment, named by its certificate.

``runtime/discovery_roles`` reads these variables. Dynamo's processes read all entries, because they watch
whole buckets and then choose (``lib/runtime/src/storage/kv/etcd.rs`` of ai-dynamo/dynamo 1.6.1). They write
only below the namespaces of their own deployment.
"""

from __future__ import annotations

from typing import Final

#: Variables of the program: addresses of the members, with commas; namespaces of deployments, with commas.
ENDPOINTS: Final = "DISCOVERY_ENDPOINTS"
NAMESPACES: Final = "DISCOVERY_NAMESPACES"
#: Variable with the file that the program writes after each round in which the store was as it should be.
STATUS: Final = "DISCOVERY_STATUS"
#: Variables with the administrator's certificate and password, by key in its secret.
ADMINISTRATOR: Final = {
    "ca": "ADMINISTRATOR_CA",
    "cert": "ADMINISTRATOR_CERT",
    "key": "ADMINISTRATOR_KEY",
    "password": "ADMINISTRATOR_PASSWORD",
}
#: Seconds between two rounds.
ROUND_SECONDS: Final = 30
#: What all entries begin with.
ENTRIES: Final = "v1/"
#: Common name of the certificate that all clients of platforms of an earlier release have.
SHARED_CLIENT: Final = "client"
#: What the entries of a namespace begin with, before its name: instances and model cards, and channels and
#: sources of events (``lib/runtime/src/discovery`` of ai-dynamo/dynamo 1.6.1).
_BUCKETS: Final = ("v1/instances/", "v1/mdc/", "v1/event_channels/namespace/", "v1/event_sources/namespace/")


def key_ranges(namespace: str) -> list[tuple[str, str]]:
    """Return the ranges of keys that a deployment may write: the first key, and the first one after it.

    Its workers register in ``NAMESPACE-CONFIGURATION``. The ranges hold what follows the name after a hyphen,
    a dot or a slash, and no other name that begins with it.

    namespace: Dynamo's namespace of the deployment.
    """
    return [(f"{bucket}{namespace}-", f"{bucket}{namespace}0") for bucket in _BUCKETS]
