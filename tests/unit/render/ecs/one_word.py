"""Every shipped blueprint with one word changed, and what ECS says to it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inference_blueprints.resources import blueprints_directory

#: Names of the limits (`EcsLimit.name`) that refuse a blueprint. Empty for those that run on ECS.
REFUSED: Mapping[str, tuple[str, ...]] = {
    "ads-reference": (),
    "batch-g6e": (),
    "capacity-and-health": ("kueue",),
    "capacity-block-p5": (),
    "elastic-g6e": (),
    "front-door": (),
    "graviton-llama-cpp": (),
    "image-generation": (),
    "inf2": (),
    "llm-d-disaggregated": ("llm-d",),
    "long-context-kv-cache": (),
    "multimodal": ("llm-d",),
    "p5en-cluster": ("reservation-tags",),
    "p5en-disaggregated": (),
    "p5en-kimi-k2": ("several-hosts", "reservation-tags"),
    "p6-b200": ("reservation-tags",),
    "p6-b300-qwen3-235b": ("reservation-tags",),
    "quickstart-g6e": (),
    "real-time": (),
    "spot-g6e": (),
    "streaming-g6e": (),
    "trn2": (),
}
#: Pools that Managed Instances run, of those that run on ECS. Auto Scaling groups run the others.
MANAGED: Mapping[str, tuple[str, ...]] = {
    "ads-reference": (),
    "batch-g6e": ("l40s",),
    "capacity-block-p5": (),
    "elastic-g6e": (),
    "front-door": (),
    "graviton-llama-cpp": (),
    "image-generation": (),
    "inf2": (),
    "long-context-kv-cache": (),
    "p5en-disaggregated": (),
    "quickstart-g6e": ("l40s",),
    "real-time": ("l40s",),
    "spot-g6e": (),
    "streaming-g6e": ("l40s",),
    "trn2": (),
}


def on_ecs(name: str) -> str:
    """Return a shipped blueprint with the word ``eks`` replaced by ``ecs``, and nothing else."""
    text = (blueprints_directory() / f"{name}.yaml").read_text(encoding="utf-8")
    return re.sub(r"\beks\b", "ecs", text)
