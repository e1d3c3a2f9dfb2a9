"""Serving stacks, which run in front of the engines: one class per file, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.stacks.direct import Direct
from inference_blueprints.serving.stacks.dynamo import Dynamo
from inference_blueprints.serving.stacks.llm_d import LlmD
from inference_blueprints.serving.stacks.serving_stack import ServingStack

#: Serving stacks by the blueprint's key. The first that runs an engine is the engine's default.
STACKS: Mapping[str, ServingStack] = MappingProxyType(
    {"dynamo": Dynamo(), "llmD": LlmD(), "direct": Direct()}
)
