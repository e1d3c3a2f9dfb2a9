"""Inference engines: one module each, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines import sglang, tensorrt_llm, vllm
from inference_blueprints.serving.engines.module import EngineModule

#: Engine module by the blueprint's key; the catalogue has an entry of the same name.
ENGINES: Mapping[str, EngineModule] = MappingProxyType(
    {"vllm": vllm, "sglang": sglang, "tensorrtLlm": tensorrt_llm}
)
