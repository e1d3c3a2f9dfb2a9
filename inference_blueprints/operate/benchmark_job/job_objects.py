"""The Kubernetes objects of a load test in a cluster: a Job, its ConfigMap and the Secret with its API key.

The Job is created first and owns the others, so that they are deleted with it, also when it expires.
"""

from __future__ import annotations

import base64
from typing import Any

from inference_blueprints.measure.benchmarking import load_generators
from inference_catalog import node_facts
from inference_contracts.records import dataclass

KubernetesObject = dict[str, Any]

#: Image of aiperf on NVIDIA's registry: Python 3.13, user 1000 (``Dockerfile`` of ai-dynamo/aiperf). Images
#: of Dynamo have an older aiperf or no aiperf.
IMAGE = f"nvcr.io/nvidia/ai-dynamo/aiperf:{load_generators.VERSION}"
#: The tokenizer inside the image; nothing is downloaded.
TOKENIZER = "builtin"
CONTAINER = "aiperf"
#: Maximum bytes of requests: a ConfigMap holds 1 MiB (https://kubernetes.io/docs/concepts/configuration),
#: including the program and the certificates.
QUESTIONS_BYTES = 1024**2 - 64 * 1024

#: Time for a new node to start and pull the image.
_START_SECONDS = 600
#: Time after the end of a Job until Kubernetes deletes it.
_KEPT_SECONDS = 600
_QUESTIONS, _WORK = "/questions", "/tmp"  # noqa: S108 - inside the container
_KEY = "apiKey"
_USER = 1000


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Settings of the Job and its objects."""

    name: str
    namespace: str
    """`name`, `namespace`: Name and namespace of all objects; the name is unique."""
    image: str
    """Container image with Python and aiperf."""
    seconds: float
    """Maximum duration of the load test."""
    with_key: bool
    """Whether the endpoint needs an API key."""
    with_authority: bool
    """Whether the ConfigMap holds certificates."""

    @property
    def deadline_seconds(self) -> int:
        """Maximum duration of the Job, with the start of its pod."""
        return _START_SECONDS + round(self.seconds)


def job(settings: JobSettings) -> KubernetesObject:
    """Return the Job: one pod on a system node, without permissions and with one writable folder."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(settings),
        "spec": {
            # No retry: the answers would come from caches.
            "backoffLimit": 0,
            "activeDeadlineSeconds": settings.deadline_seconds,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {"metadata": {"labels": _labels(settings)}, "spec": _pod(settings)},
        },
    }


def supporting_objects(
    settings: JobSettings, uid: str | None, questions: bytes, authority: bytes | None, api_key: str | None
) -> list[KubernetesObject]:
    """Return the ConfigMap and the Secret that the Job's pod waits for and reads.

    uid: UID of the Job, which owns them. None if it does not exist yet.
    questions: The compressed document that the program reads.
    authority: Certificates in PEM format, if any.
    api_key: API key of the endpoint, if it needs one.
    """
    metadata = _metadata(settings)
    if uid:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": settings.name, "uid": uid}
        metadata["ownerReferences"] = [owner]
    files = {"questions.json.gz": questions, **({"ca.pem": authority} if authority else {})}
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "immutable": True,
        "data": {"ask.py": load_generators.program().read_text(encoding="utf-8")},
        "binaryData": {name: base64.b64encode(content).decode() for name, content in files.items()},
    }
    if api_key is None:
        return [config_map]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "immutable": True,
        "type": "Opaque",
        "data": {_KEY: base64.b64encode(api_key.encode()).decode()},
    }
    return [config_map, secret]


def _pod(settings: JobSettings) -> KubernetesObject:
    """Return the pod's specification. It meets the restricted Pod Security Standard of Kubernetes."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": _system_nodes()}},
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(settings)],
        "volumes": [
            {"name": "questions", "configMap": {"name": settings.name}},
            {"name": "work", "emptyDir": {"sizeLimit": "4Gi"}},
        ],
    }


def _container(settings: JobSettings) -> KubernetesObject:
    return {
        "name": CONTAINER,
        "image": settings.image,
        "command": ["python", f"{_QUESTIONS}/ask.py"],
        "env": _environment(settings),
        # aiperf keeps all prompts and times in memory, in several processes.
        "resources": {
            "requests": {"cpu": "1", "memory": "4Gi", "ephemeral-storage": "4Gi"},
            "limits": {"memory": "4Gi", "ephemeral-storage": "6Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "questions", "mountPath": _QUESTIONS, "readOnly": True},
            {"name": "work", "mountPath": _WORK},
        ],
    }


def _environment(settings: JobSettings) -> list[KubernetesObject]:
    entries: list[KubernetesObject] = [
        {"name": "QUESTIONS", "value": f"{_QUESTIONS}/questions.json.gz"},
        {"name": "FOLDER", "value": _WORK},
    ]
    if settings.with_authority:
        # Read by OpenSSL: replaces the certificates that the image trusts.
        entries.append({"name": "SSL_CERT_FILE", "value": f"{_QUESTIONS}/ca.pem"})
    if settings.with_key:
        key = {"secretKeyRef": {"name": settings.name, "key": _KEY}}
        entries.append({"name": "API_KEY", "valueFrom": key})
    return entries


def _system_nodes() -> KubernetesObject:
    """Keep the Job off nodes with accelerators, where it would disturb the models that it measures."""
    expressions = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": [node_facts.SYSTEM_ARCHITECTURE]},
        {"key": node_facts.POOL_LABEL, "operator": "DoesNotExist"},
    ]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def _metadata(settings: JobSettings) -> KubernetesObject:
    return {"name": settings.name, "namespace": settings.namespace, "labels": _labels(settings)}


def _labels(settings: JobSettings) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "benchmark",
        "app.kubernetes.io/instance": settings.name,
        "app.kubernetes.io/managed-by": "inference-blueprints",
    }
