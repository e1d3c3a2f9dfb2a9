"""Deployments on engines' own servers."""

from __future__ import annotations

from inference_blueprints.spec.source import shipped
from tests.charts.llm_d import HUB_ARN, REVISION, planned

CHART = "direct-model"

QUICKSTART = shipped()["quickstart-g6e"].read_text(encoding="utf-8")
ELASTIC = shipped()["elastic-g6e"].read_text(encoding="utf-8")
DIRECT = ("    deployments:\n", "    stack: {direct: {}}\n    deployments:\n")
MIRRORED = (
    "weights: {huggingFace: Qwen/Qwen3-8B}",
    f"weights: {{huggingFace: Qwen/Qwen3-8B, revision: {REVISION}, mirror: {{}}}}",
)
WITH_TOKEN = (
    "weights: {huggingFace: Qwen/Qwen3-8B}",
    f"weights: {{huggingFace: Qwen/Qwen3-8B, tokenSecretArn: '{HUB_ARN}'}}",
)
FOUR_PER_NODE = ("instanceTypes: [g6e.2xlarge]", "instanceTypes: [g6e.12xlarge]")
PINNED = (
    "weights: {huggingFace: Qwen/Qwen3-8B}",
    f"weights: {{huggingFace: Qwen/Qwen3-8B, revision: {REVISION}}}",
)

#: A worker that compiles: it loads before it starts, and stores beside its server.
COMPILING = (
    ("instanceTypes: [g6e.2xlarge]", "instanceTypes: [inf2.8xlarge]"),
    ("peakRequestsPerSecond: 2", "peakRequestsPerSecond: 0.1"),
    (
        "weights: {huggingFace: Qwen/Qwen3-8B}",
        "engine: {vllmNeuron: {args: {max-model-len: 8192}}}\n    weights: {huggingFace: "
        f"meta-llama/Llama-3.1-8B-Instruct, revision: {REVISION}, tokenSecretArn: '{HUB_ARN}'}}",
    ),
)
TRAINIUM = shipped()["trn2"].read_text(encoding="utf-8")
GRAVITON = shipped()["graviton-llama-cpp"].read_text(encoding="utf-8")
IMAGES = shipped()["image-generation"].read_text(encoding="utf-8")

#: What is deployed, by the name of its reviewed rendering.
DEPLOYMENTS = {
    "direct-hub": planned(DIRECT, WITH_TOKEN, of=QUICKSTART),
    "direct-mirror": planned(DIRECT, MIRRORED, of=QUICKSTART),
    "direct-shared": planned(DIRECT, FOUR_PER_NODE, PINNED, of=QUICKSTART),
    "direct-neuron": planned(*COMPILING, of=QUICKSTART),
    "direct-neuron-shared": planned(of=TRAINIUM),
    "direct-processors": planned(of=GRAVITON),
    "direct-elastic": planned(DIRECT, of=ELASTIC),
    "direct-images": planned(of=IMAGES),
}
