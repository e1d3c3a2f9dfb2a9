"""vLLM-Omni: the arguments of a worker that makes images.

``vllm serve --omni`` is vLLM's own program, which hands over to vLLM-Omni (`maybe_run_omni` in
``vllm/entrypoints/cli/main.py`` of vLLM 0.30.0). Flags, functions and files named here are those of vllm-omni
0.30.0. A request is computed alone: the next one
waits in the worker (``max_num_seqs`` of `OmniDiffusionConfig` is 1, ``vllm_omni/diffusion/data.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.command_line import Argument, command_line
from inference_blueprints.serving.engines.serving_engine import (
    ArgumentNames,
    OwnServer,
    RequestCounter,
    ServingEngine,
)
from inference_blueprints.serving.estimates.node_copies import model_location
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnvironmentValue
from inference_catalog import Accelerator

# The defaults of 300 and 600 s are shorter than the startup check, and would end a slow start.
_INIT_SECONDS = 900
# ``OmniServeCommand.validate`` in ``vllm_omni/entrypoints/cli/serve.py``.
_REFUSED = "`vllm serve --omni` refuses it; raise replicas"
_SIZED = "it follows from workload.images"
# ``build_stage_sampling_params_list`` in ``vllm_omni/entrypoints/openai/stage_params.py``: parameters of a
# request for images from text replace all defaults.
_NO_DEFAULTS = "it has no effect on images from text; name steps and guidance in each request"
_NOT_PLANNED = "the plan counts no memory for it"
# Arguments that vLLM's server owns because of what it does with prompts and caches.
_OF_TEXT = ("enable-scale-out", "trust-request-mm-kwargs", "enable-prompt-tokens-details")
_ONE_STAGE = "a worker is one stage in one process"
_OTHER_MODELS = "models that speak, sing or act are not served here"


class VllmOmni(ServingEngine):
    """vLLM-Omni's server of images."""

    argument_names = ArgumentNames(
        length="",
        sequences="",
        step_tokens="",
        block_size="",
        memory_share="",
        kv_cache_type="",
        kv_cache_types=(),
        without_prefix_cache=("", False),
    )
    kv_cache_types: Mapping[str, str] = MappingProxyType({})
    needs_user_name = True
    own_server = OwnServer(
        program="vllmOmniServer",
        command=("vllm", "serve"),
        # ``vllm_omni/metrics/definitions.py`` and ``prometheus.py``.
        running="vllm_omni:num_requests_running",
        waiting="vllm_omni:num_requests_waiting",
        requests=RequestCounter("vllm_omni:requests_success_total"),
        # The stages are processes of their own, and nothing states that they outlive SIGTERM.
        finishes_answers=False,
    )
    block_size = 1

    def step_tokens(self, accelerator: Accelerator) -> int:  # noqa: ARG002 -- images are no tokens
        return 1

    def planned_arguments(self, resolved: ResolvedWorkers, sizing: Sizing) -> Mapping[str, Argument]:  # noqa: ARG002
        images = resolved.traffic.means.images
        if images is None:
            raise ValueError(f"{resolved.label}: no images in the workload; the rules report it")
        return {
            "model": model_location(resolved),
            "served-model-name": resolved.model.name,
            "tensor-parallel-size": resolved.tensor_parallel_size,
            "max-generated-image-size": images.pixels,
            "vae-use-slicing": True,
            "stage-init-timeout": _INIT_SECONDS,
            "init-timeout": _INIT_SECONDS,
        }

    def server_arguments(
        self,
        arguments: Mapping[str, Argument],
        port: int,
        stream_seconds: int,  # noqa: ARG002 -- the signal comes after the longest answer
    ) -> tuple[str, ...]:
        options = {name: value for name, value in arguments.items() if name != "model"}
        return (str(arguments["model"]), "--omni", *command_line({**options, "port": port}))

    def environment(self, resolved: ResolvedWorkers) -> Mapping[str, EnvironmentValue]:
        return {"VLLM_NO_USAGE_STATS": "1", **super().environment(resolved)}
