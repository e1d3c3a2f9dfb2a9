"""An API server that is held while it takes in an object."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from inference_blueprints.operate.kubernetes import Kubectl
from inference_local.control_plane.control_plane import LOOPBACK

_NAME = "held.test.local"
_ASKED_WITHIN_SECONDS = 240
#: The longest that the API server waits for a webhook.
_HELD_SECONDS = 30


@contextmanager
def held(kubectl: Kubectl, group: str, resource: str) -> Iterator[Callable[[], None]]:
    """Hold the API server while it takes in a new object of a kind.

    It asks a webhook that takes its call and never answers; when the block ends, nobody listens any more, and
    the object is taken in without an answer.

    Yields: Returns when the API server asks.
    """
    with socket.create_server((LOOPBACK, 0)) as listener:
        listener.settimeout(_ASKED_WITHIN_SECONDS)
        calls: list[socket.socket] = []
        kubectl.apply([_configuration(group, resource, listener.getsockname()[1])])
        try:
            yield lambda: calls.append(listener.accept()[0])
        finally:
            listener.close()
            for call in calls:
                call.close()
            kubectl.run("delete", "validatingwebhookconfigurations", _NAME)


def _configuration(group: str, resource: str, port: int) -> dict[str, object]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": _NAME},
        "webhooks": [
            {
                "name": _NAME,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {"url": f"https://{LOOPBACK}:{port}"},
                "failurePolicy": "Ignore",
                "rules": [
                    {
                        "apiGroups": [group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE"],
                        "resources": [resource],
                    }
                ],
                "sideEffects": "None",
                "timeoutSeconds": _HELD_SECONDS,
            }
        ],
    }
