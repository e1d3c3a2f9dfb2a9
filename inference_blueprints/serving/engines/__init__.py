"""Inference engines: one class per file, found by the blueprint's key."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.engines.llama_cpp import LlamaCpp
from inference_blueprints.serving.engines.serving_engine import ServingEngine
from inference_blueprints.serving.engines.sglang import Sglang
from inference_blueprints.serving.engines.tensorrt_llm import TensorRtLlm
from inference_blueprints.serving.engines.vllm import Vllm
from inference_blueprints.serving.engines.vllm_neuron import VllmNeuron
from inference_blueprints.serving.engines.vllm_omni import VllmOmni

#: Engines by the blueprint's key; the catalogue has an entry of the same name.
ENGINES: Mapping[str, ServingEngine] = MappingProxyType(
    {
        "vllm": Vllm(),
        "sglang": Sglang(),
        "tensorrtLlm": TensorRtLlm(),
        "vllmNeuron": VllmNeuron(),
        "llamaCpp": LlamaCpp(),
        "vllmOmni": VllmOmni(),
    }
)
