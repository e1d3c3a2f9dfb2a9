"""The kinds of engines that a local run offers, by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.engine_names import EngineName
from inference_local.serving.llama_cpp.llama_kind import ENGINE, LlamaKind
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind

ENGINE_KINDS: Mapping[EngineName, type[EngineKind]] = MappingProxyType(
    {EngineName.SIMULATED: SimulatedKind, EngineName.VLLM: VllmKind, EngineName.LLAMA: LlamaKind}
)


def engine_kind(engines: EngineName, blueprint: Blueprint, gguf: Path | None = None) -> EngineKind:
    """Return the engines of a local run.

    gguf: A file of GGUF to serve. None for what the kind serves by itself.
    Raises UserError if the engines do not read the file.
    """
    if gguf is None:
        return ENGINE_KINDS[engines](blueprint)
    if engines is not EngineName.LLAMA:
        raise UserError(
            f"--gguf: got {gguf} with the engines {engines}, and only llama-server reads it; choose a "
            "blueprint whose models have the engine llamaCpp, and --engines llama"
        )
    return LlamaKind(blueprint, file=gguf)


def default_engines(blueprint: Blueprint) -> EngineName:
    """Return the engines of a local run that names none.

    blueprint: If all its models have the engine ``llamaCpp``, its real server runs: it needs no accelerator
        on AWS either. Otherwise, engines are simulated.
    """
    of_llama = all(model.engine.chosen == ENGINE for model in blueprint.spec.models)
    return EngineName.LLAMA if of_llama else EngineName.SIMULATED
