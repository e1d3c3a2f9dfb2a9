"""The shipped `p5en-disaggregated` in its correct deployed state. Each test breaks one thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease, SynthesisedPlatform
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from tests.unit.operate.conftest import NOW
from tests.unit.operate.verify import recorded
from tests.unit.operate.verify.recorded import RELEASE, RecordedCluster

_SYSTEM = {"node.kubernetes.io/instance-type": "m7i.xlarge"}
_PROCESSES = {"frontend": 2, "prefill": 12, "decode": 1}
_MIRROR = "qwen3-32b.weights"
RELEASES = {
    "karpenter": ExpectedRelease("karpenter", "kube-system", "1.14.1"),
    "aws-efa-k8s-device-plugin": ExpectedRelease("aws-efa-k8s-device-plugin", "kube-system", "v0.5.30"),
    RELEASE: ExpectedRelease(RELEASE, "inference", "0.1.0"),
    _MIRROR: ExpectedRelease(_MIRROR, "inference", "0.1.0"),
}

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def platform(account: Account) -> Callable[..., VerifiedPlatform]:
    """Create the platform from the shipped blueprint, without its mirror. A function may change its spec."""

    def make(change: Change | None = None) -> VerifiedPlatform:
        document = yaml.safe_load((blueprints_directory() / "p5en-disaggregated.yaml").read_text())
        del document["spec"]["models"][0]["weights"]["mirror"]  # Only vLLM has one.
        if change:
            change(document["spec"])
        blueprint = parse_blueprint(yaml.safe_dump(document), "a.yaml").blueprint
        endpoint = {"Endpoint": {"Value": "http://127.0.0.1:1/v1"}}
        templates: dict[str, dict[str, Any]] = {
            "p5en-disaggregated-Data": {"Resources": {}},
            "p5en-disaggregated-Model-qwen3-32b": {"Resources": {}, "Outputs": endpoint},
        }
        return VerifiedPlatform(
            account, blueprint, build_plan(blueprint), SynthesisedPlatform(templates, RELEASES), "a.yaml", NOW
        )

    return make


@pytest.fixture
def cluster() -> RecordedCluster:
    """A cluster without errors."""
    efa_release = "aws-efa-k8s-device-plugin"
    return RecordedCluster(
        {
            "nodes": [
                *(recorded.node(f"system-{number}", _SYSTEM, {}) for number in range(2)),
                *(recorded.h200(f"h200-{number}") for number in range(2)),
            ],
            "nodepools.karpenter.sh": [recorded.node_pool("h200", "h200")],
            "ec2nodeclasses.karpenter.k8s.aws": [recorded.node_class("h200")],
            "daemonsets": [
                recorded.daemon("aws-node"),
                recorded.daemon("efa-plug-in", wanted=2, ready=2, release=efa_release),
            ],
            "deployments": [recorded.controller("karpenter", "karpenter")],
            "secrets": [recorded.helm_secret(release) for release in RELEASES.values()],
            "jobs": [],
            "pods": [
                recorded.pod(f"{process}-{number}", process)
                for process, count in _PROCESSES.items()
                for number in range(count)
            ],
        }
    )


@pytest.fixture
def running(platform: Callable[..., VerifiedPlatform], cluster: RecordedCluster) -> RunningPlatform:
    return RunningPlatform(platform(), cluster)
