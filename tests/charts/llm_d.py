"""Deployments on llm-d, and the parts of what their chart renders."""

from __future__ import annotations

import re

import yaml

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, Process
from inference_blueprints.spec.source import shipped
from tests.charts.renderings import Manifest

CHART = "llm-d-model"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"
REVISION = "b968826d9c46dd6066d109eabc6255188de91218"
SHIPPED = shipped()["llm-d-disaggregated"].read_text(encoding="utf-8")
MULTIMODAL = shipped()["multimodal"].read_text(encoding="utf-8")
BUCKET = "acme-weights"
#: Secret with the certificate of a deployment behind a front door.
CERTIFICATE_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:certificate-AbCdEf"
ROUTER = "router"


def planned(*edits: tuple[str, str], of: str = SHIPPED) -> DeploymentPlan:
    """A shipped blueprint's deployment after edits of its text."""
    text = of
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    plan = build_plan(parse_blueprint(text, "blueprint.yaml").blueprint)
    (deployment,) = plan.models[0].deployments
    return deployment


_AGGREGATED = re.search(r"      disaggregated:.*", SHIPPED, re.DOTALL)
assert _AGGREGATED
APPROXIMATE = ("{llmD: {prefixScorer: precise}}", "{llmD: {}}")
APART = (_AGGREGATED.group(), "      aggregated: {pool: h200, replicas: 4, tensorParallelSize: 2}\n")
ACROSS_NODES = (
    _AGGREGATED.group(),
    "      aggregated: {pool: h200, replicas: 1, tensorParallelSize: 8, pipelineParallelSize: 2}\n",
)
_WEIGHTS = re.search(r"    weights:\n(      .*\n)+", SHIPPED)
assert _WEIGHTS
UNMIRRORED = (_WEIGHTS.group(), "    weights: {huggingFace: Qwen/Qwen3-32B}\n")
MIXTURE = (_WEIGHTS.group(), "    weights: {huggingFace: deepseek-ai/DeepSeek-R1}\n")
MIRRORED = (
    _WEIGHTS.group(),
    f"    weights: {{huggingFace: Qwen/Qwen3-32B, revision: {REVISION}, mirror: {{}}}}\n",
)
WITH_TOKEN = (
    _WEIGHTS.group(),
    f"    weights: {{huggingFace: Qwen/Qwen3-32B, tokenSecretArn: '{HUB_ARN}'}}\n",
)
ON_TCP = ("    efa: true\n", "")

#: What is deployed, by the name of its reviewed rendering.
DEPLOYMENTS = {
    "llm-d-disaggregated": planned(),
    "llm-d-aggregated": planned(APPROXIMATE, APART, MIRRORED),
    "llm-d-approximate": planned(APPROXIMATE, ON_TCP, WITH_TOKEN),
    "llm-d-precise": planned(APART, UNMIRRORED),
    "llm-d-multimodal": planned(of=MULTIMODAL),
    "llm-d-two-nodes": planned(APPROXIMATE, ACROSS_NODES, MIXTURE),
}


def of_kind(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def deployments(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The Deployments by the process that they run, and groups as if they were those of their leaders."""
    found = {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]
        for each in of_kind(manifests, "Deployment")
    }
    return found | {process: _of_leaders(spec) for process, spec in groups(manifests).items()}


def groups(manifests: list[Manifest]) -> dict[str, Manifest]:
    """The LeaderWorkerSets by the process that they run."""
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["spec"]
        for each in of_kind(manifests, "LeaderWorkerSet")
    }


def _of_leaders(spec: Manifest) -> Manifest:
    rollout = spec["rolloutStrategy"]
    strategy = {"type": rollout["type"], "rollingUpdate": rollout["rollingUpdateConfiguration"]}
    template = spec["leaderWorkerTemplate"]["leaderTemplate"]
    return {"replicas": spec["replicas"], "strategy": strategy, "template": template}


def pod(manifests: list[Manifest], process: str) -> Manifest:
    return dict(deployments(manifests)[process]["template"]["spec"])


def main_container(spec: Manifest) -> Manifest:
    (container,) = spec["containers"]
    return dict(container)


def sidecars(spec: Manifest) -> dict[str, Manifest]:
    return {
        each["name"]: each for each in spec.get("initContainers", []) if each.get("restartPolicy") == "Always"
    }


def argument(process: Process, flag: str) -> str:
    return process.arguments[process.arguments.index(flag) + 1]


def configuration(manifests: list[Manifest], file: str) -> Manifest:
    (config_map,) = [each for each in of_kind(manifests, "ConfigMap") if file in each["data"]]
    return dict(yaml.safe_load(config_map["data"][file]))
