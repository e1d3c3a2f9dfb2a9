"""The key under which the compiled artefacts of a worker on Neuron are kept in S3.

vLLM with NxD Inference loads what its folder holds, whatever its arguments say: "any differing model
configurations […] will not trigger re-compilation" (``vllm-user-guide-v1.rst``, Loading pre-compiled models).
So everything that changes the compiled program is in the key, and what is not known to change nothing is too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from inference_blueprints.serving.command_line import Argument
from inference_blueprints.serving.engines.vllm_neuron import ARTEFACTS_FOLDER, LOGICAL_CORE_CONFIG
from inference_blueprints.serving.engines.worker_sizing import engine_of, worker_sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import CompiledArtefacts, WeightsBucket
from inference_blueprints.serving.weights_loading import never_change

#: Arguments that name, route or parse, and compile nothing. Any other argument changes the key.
_WITHOUT_EFFECT = frozenset(
    {
        "model",
        "revision",
        "served-model-name",
        "reasoning-parser",
        "tool-call-parser",
        "enable-auto-tool-choice",
    }
)
_PREFIX = "neuron"
#: Time without renewal after which another worker may compile. Workers renew their claim each minute.
_CLAIM_SECONDS = 600


@dataclass(frozen=True, slots=True)
class ArtefactParts:
    """All that changes compiled artefacts."""

    model: str
    """Repository on the Hub."""
    revision: str
    """Its commit."""
    image: str
    """Image with its tag, which names the releases of vLLM, the plug-in and the Neuron SDK."""
    accelerator: str
    """Kind of device, which is the target of the compiler."""
    cores: int
    """Logical cores over which layers are split."""
    logical_core_config: int
    """Physical cores per logical core; 1 where they cannot be grouped."""
    weight_type: str
    arguments: Mapping[str, Argument]
    """Arguments of the server that compile something: lengths, batch sizes, buckets, types, and the
    user's."""
    environment: Mapping[str, str]
    """The user's variables."""


def artefact_key(parts: ArtefactParts) -> str:
    """Return the key of artefacts: equal for equal parts, whatever their order.

    parts: What changes them.
    Returns: The prefix in the bucket, ``neuron/<32 hexadecimal digits>``.
    """
    text = json.dumps(asdict(parts), sort_keys=True, separators=(",", ":"))
    return f"{_PREFIX}/{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def compiled_artefacts(resolved: ResolvedWorkers, image: str, health_url: str) -> CompiledArtefacts | None:
    """Return where a worker keeps its compiled artefacts; None if it keeps none.

    image: The worker's image.
    health_url: Address at which the worker's own pod answers 200 once it has compiled.
    """
    parts = artefact_parts(resolved, image)
    if parts is None:
        return None
    key = artefact_key(parts)
    return CompiledArtefacts(
        folder=ARTEFACTS_FOLDER,
        key=key,
        environment={
            "ARTEFACTS_BUCKET": WeightsBucket(),
            "ARTEFACTS_KEY": key,
            "ARTEFACTS_FOLDER": ARTEFACTS_FOLDER,
            "ARTEFACTS_CLAIM_SECONDS": str(_CLAIM_SECONDS),
            "ARTEFACTS_COMPILE_SECONDS": str(2 * engine_of(resolved).compile_seconds),
            "ARTEFACTS_HEALTH_URL": health_url,
        },
    )


def artefact_parts(resolved: ResolvedWorkers, image: str) -> ArtefactParts | None:
    """Return what changes the artefacts of a worker; None if they cannot be shared.

    They are shared only if the model is that of a commit: a branch could change under the same key.
    """
    if resolved.model.engine.vllm_neuron is None or not never_change(resolved.model):
        return None
    arguments = engine_of(resolved).arguments(resolved, worker_sizing(resolved))
    grouped = LOGICAL_CORE_CONFIG if resolved.accelerator.name == "trainium2" else 1
    return ArtefactParts(
        model=resolved.model.weights.hugging_face or "",
        revision=resolved.model.weights.revision or "",
        image=image,
        accelerator=resolved.accelerator.name,
        cores=resolved.tensor_parallel_size,
        logical_core_config=grouped,
        weight_type=resolved.shape.weight_type,
        arguments={name: value for name, value in arguments.items() if name not in _WITHOUT_EFFECT},
        environment=dict(resolved.model.engine.section.env),
    )
