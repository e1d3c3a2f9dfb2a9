"""What pages tell people to run with kubectl, run on the real API server against objects of these names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

import inference_catalog as catalog
from inference_blueprints.operate.kubernetes import Kubectl, KubectlFailed
from inference_contracts.metric_labels import POD_LABEL_PREFIX
from tests.cluster.nodes import node
from tests.cluster.state import namespace_object
from tests.unit.docs.test_commands import PAGES, commands
from tests.unit.docs.test_kubectl_commands import CONTAINERS, OBJECTS

#: Dynamo's operator brings its definition, and neither is to be had here: tests/unit/docs has its name.
_OF_DYNAMO = "dynamographdeploymentscalingadapters"
#: A kubelet answers these, and there is none: nodes are KWOK's.
_OF_KUBELETS = {"logs", "port-forward"}
#: Ends with the caller only.
_ENDLESS = "--watch"
#: What the API server answers once it has found the pod and its node, and before it asks the kubelet.
#: https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/util/node/node.go (NoMatchError)
_NO_KUBELET = "no preferred addresses found"
_NODE = "node"
#: Keeps pods of other tests away.
_TAINTS = [{"key": "named-in-a-page", "effect": "NoSchedule"}]
_LABELS = {"app": "one", f"{POD_LABEL_PREFIX}role": "frontend", f"{POD_LABEL_PREFIX}model": "model"}

_COMMANDS = {
    " ".join(words): words[1:]
    for page in PAGES
    for words in commands(page)
    if words[0] == "kubectl" and not words[2].startswith(_OF_DYNAMO)
}


def _asked(question: str) -> list[str]:
    """Return the arguments, with a name for each word in capitals."""
    words = [re.sub("[A-Z]{2,}", lambda found: found[0].lower(), word) for word in _COMMANDS[question]]
    return [word for word in words if word != _ENDLESS]


def _object(version: str, kind: str, name: str, namespace: str | None, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": _LABELS} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def _pod(name: str, namespace: str) -> dict[str, Any]:
    first, *others = [
        {"name": each, "image": "example.invalid/image"} for each in CONTAINERS.get(namespace, ("main",))
    ]
    containers = [{**first, "ports": [{"containerPort": 80}]}, *others]
    specification = {"nodeName": _NODE, "containers": containers, "terminationGracePeriodSeconds": 0}
    return _object("v1", "Pod", name, namespace, spec=specification)


def _named_objects() -> list[dict[str, Any]]:
    """Return what commands name: a node, its claim and its pods, and the objects of charts."""
    kind = catalog.instance_type("g6e.2xlarge")
    owned = [
        _object(
            "apps/v1",
            "Deployment",
            name.partition("/")[2],
            namespace,
            spec={
                "replicas": 0,
                "selector": {"matchLabels": _LABELS},
                "template": {"metadata": {"labels": _LABELS}, "spec": _pod("", namespace)["spec"]},
            },
        )
        if name.startswith("deployment/")
        else _object(
            "v1",
            "Service",
            name.partition("/")[2],
            namespace,
            spec={"selector": _LABELS, "ports": [{"port": 80}]},
        )
        for namespace, names in OBJECTS.items()
        for name in sorted(names)
    ]
    claims = [
        _object(
            "karpenter.sh/v1",
            "NodeClaim",
            name,
            None,
            spec={
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "class"},
                "requirements": [],
            },
        )
        for name in ("nodeclaim", "name")
    ]
    scaled = _object(
        "keda.sh/v1alpha1",
        "ScaledObject",
        "release-worker",
        "inference",
        spec={
            "scaleTargetRef": {"name": "release-worker"},
            "triggers": [{"type": "cpu", "metadata": {"value": "50"}}],
        },
    )
    queue = _object("kueue.x-k8s.io/v1beta2", "ClusterQueue", "pool", None, spec={})
    return [
        node(_NODE, kind, labels={}, taints=_TAINTS),
        *claims,
        scaled,
        queue,
        *owned,
        *(_pod("pod", namespace) for namespace in ("inference", *OBJECTS)),
    ]


@pytest.fixture(scope="module")
def namespaces(kubectl: Kubectl) -> Iterator[None]:
    """The namespaces of charts. In the end, what commands name goes: nodes would matter to other tests."""
    kubectl.apply([namespace_object(name) for name in OBJECTS])
    yield
    document = {"apiVersion": "v1", "kind": "List", "items": _named_objects()}
    kubectl.run("delete", "--ignore-not-found", "--filename", "-", document=document)


@pytest.fixture
def cluster(kubectl: Kubectl, namespaces: None) -> Kubectl:
    """A client of a cluster with everything that commands name."""
    kubectl.apply(_named_objects())
    return kubectl


@pytest.mark.parametrize("question", [each for each in _COMMANDS if _COMMANDS[each][0] not in _OF_KUBELETS])
def test_the_api_server_does_what_is_asked_for(question: str, cluster: Kubectl) -> None:
    cluster.run(*_asked(question))


@pytest.mark.parametrize("question", [each for each in _COMMANDS if _COMMANDS[each][0] in _OF_KUBELETS])
def test_only_the_kubelet_is_missing(question: str, cluster: Kubectl) -> None:
    """The API server finds the pods; what their kubelets would answer cannot be seen here."""
    cluster.run(
        "wait",
        "--all-namespaces",
        "--selector",
        "app=one",
        "--for=jsonpath={.status.phase}=Running",
        "pod",
        "--timeout=240s",
    )
    with pytest.raises(KubectlFailed, match=_NO_KUBELET):
        cluster.run(*_asked(question))
