"""The kinds of engines that a local run offers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.targets.local.engine_kind import EngineKind
from inference_blueprints.targets.local.engine_names import EngineName
from inference_blueprints.targets.local.simulated_kind import SimulatedKind
from inference_blueprints.targets.local.vllm_cpu.vllm_kind import VllmKind

ENGINE_KINDS: Mapping[EngineName, type[EngineKind]] = MappingProxyType(
    {EngineName.SIMULATED: SimulatedKind, EngineName.VLLM: VllmKind}
)
