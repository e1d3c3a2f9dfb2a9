"""A model that counts: the token after a word is always the next word of the vocabulary.

Its weights are real files that vLLM loads. Attention and MLP compute, but their last projections are zero, so
the hidden state of a position stays the embedding of its token. The row of the head for a token is the
embedding of the token before it. Embeddings are random signs, so no other row comes near that one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from inference_blueprints.catalog import Model
from inference_blueprints.measurement.tokenizer.model_directory import write_model_directory
from inference_blueprints.measurement.tokenizer.vocabulary import one_token_words
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.targets.local.launch import Launch
from inference_blueprints.targets.local.local_deployment import LocalDeployment, LocalWorkers, WorkerPlace
from inference_blueprints.targets.local.vllm_cpu.vllm_kind import VllmKind, VllmRole

_LAYERS, _HIDDEN, _HEADS, _KV_HEADS, _HEAD, _MLP = 2, 256, 4, 2, 64, 64
_CONTEXT = 32_768
# The text of the messages alone, so that an answer goes on from the last word of the request.
_CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

_Array = npt.NDArray[np.float32]


def words_after(start: int, count: int) -> list[str]:
    """Return the words that the model writes after a word.

    Parameters
    ----------
    start
        Index of the word in the vocabulary.
    count
        Number of words.
    """
    words = one_token_words()
    return [words[(start + 1 + step) % len(words)] for step in range(count)]


def prompt_to(start: int, count: int) -> str:
    """Return a prompt of so many words that ends with a word of the vocabulary."""
    return "".join(f" {word}" for word in words_after(start - count, count))


def write_counting_model(shape: Model, directory: Path) -> None:
    """Write tokenizer, configuration and weights.

    Parameters
    ----------
    shape
        A model of the catalogue, for the files that describe it.
    directory
        Folder for the files. It is created.
    """
    write_model_directory(shape, directory)
    vocabulary = json.loads((directory / "tokenizer.json").read_text())["model"]["vocab"]
    described = json.loads((directory / "tokenizer_config.json").read_text())
    (directory / "tokenizer_config.json").write_text(
        json.dumps(described | {"chat_template": _CHAT_TEMPLATE})
    )
    configuration = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": _HIDDEN,
        "intermediate_size": _MLP,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
        "num_key_value_heads": _KV_HEADS,
        "head_dim": _HEAD,
        "vocab_size": len(vocabulary),
        "max_position_embeddings": _CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e6,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "attention_bias": False,
        "bos_token_id": vocabulary["<|endoftext|>"],
        "eos_token_id": vocabulary["<|im_end|>"],
        "torch_dtype": "float32",
    }
    (directory / "config.json").write_text(json.dumps(configuration))
    _write_safetensors(_weights(vocabulary), directory / "model.safetensors")


def _weights(vocabulary: dict[str, int]) -> dict[str, _Array]:
    random = np.random.default_rng(1)
    embedding = random.choice(np.array([-1, 1], np.float32), size=(len(vocabulary), _HIDDEN))
    head = np.zeros_like(embedding)
    words = one_token_words()
    for index, word in enumerate(words):
        following = vocabulary["Ġ" + words[(index + 1) % len(words)]]
        for token in ("Ġ" + word, word):
            head[following] += embedding[vocabulary[token]]
    weights = {
        "model.embed_tokens.weight": embedding,
        "lm_head.weight": head,
        "model.norm.weight": np.ones(_HIDDEN, np.float32),
    }

    def small(*size: int) -> _Array:
        return (random.standard_normal(size) * 0.02).astype(np.float32)

    for layer in range(_LAYERS):
        of_layer = {
            "input_layernorm": np.ones(_HIDDEN, np.float32),
            "post_attention_layernorm": np.ones(_HIDDEN, np.float32),
            "self_attn.q_proj": small(_HEADS * _HEAD, _HIDDEN),
            "self_attn.k_proj": small(_KV_HEADS * _HEAD, _HIDDEN),
            "self_attn.v_proj": small(_KV_HEADS * _HEAD, _HIDDEN),
            "self_attn.o_proj": np.zeros((_HIDDEN, _HEADS * _HEAD), np.float32),
            "self_attn.q_norm": np.ones(_HEAD, np.float32),
            "self_attn.k_norm": np.ones(_HEAD, np.float32),
            "mlp.gate_proj": small(_MLP, _HIDDEN),
            "mlp.up_proj": small(_MLP, _HIDDEN),
            "mlp.down_proj": np.zeros((_HIDDEN, _MLP), np.float32),
        }
        weights |= {f"model.layers.{layer}.{name}.weight": values for name, values in of_layer.items()}
    return weights


def _write_safetensors(weights: dict[str, _Array], path: Path) -> None:
    """Write the format of https://huggingface.co/docs/safetensors: length of the header, header, data."""
    header, end = {}, 0
    for name, values in weights.items():
        begin, end = end, end + values.nbytes
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": (begin, end)}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for values in weights.values():
            file.write(values.tobytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingRole(VllmRole):
    """vLLM workers that load the weights of the model instead of random ones."""

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        launch = VllmRole.launch(self, model, place, workers)
        # The last of two equal options counts.
        return replace(launch, command=[*launch.command, "--load-format", "safetensors"])


class CountingKind(VllmKind):
    """vLLM on the processors of this machine, with the counting model."""

    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        return tuple(
            _CountingRole(
                planned=role.planned,
                replicas=role.replicas,
                context_length=role.context_length,
                profile=role.profile,
                release=role.release,
                python=role.python,
            )
            for role in VllmKind.workers(self, plan, roles)
            if isinstance(role, VllmRole)
        )

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:  # noqa: ARG002 -- the same for each deployment
        write_counting_model(shape, directory)
