"""The Kubernetes objects of a benchmark in a cluster: a Job, what it reads, and the key that it shows.

The Job comes first. The others are owned by it, so that all are gone with it, also when nobody deletes it.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from inference_blueprints.benchmarking import aiperf
from inference_blueprints.catalog import placement

KubernetesObject = dict[str, Any]

#: aiperf's own image on NVIDIA's registry: Python 3.13, user 1000 (``Dockerfile`` of ai-dynamo/aiperf). Those
#: of Dynamo have an older aiperf or none.
IMAGE = f"nvcr.io/nvidia/ai-dynamo/aiperf:{aiperf.VERSION}"
#: The tokenizer that the image has in itself; nothing is downloaded.
TOKENIZER = "builtin"
CONTAINER = "aiperf"
#: Bytes of questions at the most: a ConfigMap holds 1 MiB (https://kubernetes.io/docs/concepts/configuration),
#: and program and certificates are in it, too.
QUESTIONS_BYTES = 1024**2 - 64 * 1024

#: A node may have to come first, and its image be pulled.
_START_SECONDS = 600
#: Who is away for longer than this after its end finds nothing any more, and nothing is left.
_KEPT_SECONDS = 600
_QUESTIONS, _WORK = "/questions", "/tmp"  # noqa: S108 - of the container alone
_KEY = "apiKey"
_USER = 1000


@dataclass(frozen=True, slots=True)
class JobSettings:
    """What the objects say.

    Parameters
    ----------
    name, namespace
        Of all of them; the name is new each time.
    image
        Has Python and aiperf.
    seconds
        How long asking may take.
    with_key
        Whether the endpoint wants a key.
    with_authority
        Whether certificates come along.
    """

    name: str
    namespace: str
    image: str
    seconds: float
    with_key: bool
    with_authority: bool

    @property
    def deadline_seconds(self) -> int:
        """When the Job is ended, counted from its start."""
        return _START_SECONDS + round(self.seconds)


def job(settings: JobSettings) -> KubernetesObject:
    """Return the Job: one pod on a system node, with no rights and nothing to write to but its own folder.

    Parameters
    ----------
    settings
        What it says.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(settings),
        "spec": {
            # What was asked once is not asked again: the answers would come from caches.
            "backoffLimit": 0,
            "activeDeadlineSeconds": settings.deadline_seconds,
            "ttlSecondsAfterFinished": _KEPT_SECONDS,
            "template": {"metadata": {"labels": _labels(settings)}, "spec": _pod(settings)},
        },
    }


def belongings(
    settings: JobSettings, uid: str | None, questions: bytes, authority: bytes | None, api_key: str | None
) -> list[KubernetesObject]:
    """Return what the Job's pod reads; it waits for it.

    Parameters
    ----------
    settings
        Of the Job.
    uid
        Of the Job, which owns them; None where it is not there yet.
    questions
        The document that the program reads.
    authority
        Certificates in PEM form; None where none come along.
    api_key
        The endpoint's key; None without one.
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
        "data": {"ask.py": aiperf.program().read_text(encoding="utf-8")},
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
    """Describe the pod; it meets Kubernetes' restricted standard."""
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
        # It keeps every request's prompt and times in memory, in several processes.
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
        # Of OpenSSL: what Python trusts in place of the image's own.
        entries.append({"name": "SSL_CERT_FILE", "value": f"{_QUESTIONS}/ca.pem"})
    if settings.with_key:
        key = {"secretKeyRef": {"name": settings.name, "key": _KEY}}
        entries.append({"name": "API_KEY", "valueFrom": key})
    return entries


def _system_nodes() -> KubernetesObject:
    """Accelerators are for models, and a benchmark beside one would be a part of what it measures."""
    expressions = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": [placement.SYSTEM_ARCHITECTURE]},
        {"key": placement.POOL_LABEL, "operator": "DoesNotExist"},
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
