"""Workers of the real engine with the counting model: the token after a word is the next word."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from inference_blueprints.measure.tokenizer import one_token_words
from inference_catalog import Model
from inference_local.serving.local_deployment import LocalDeployment, WorkerPlace
from inference_local.serving.process_commands import Launch
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind, VllmRole
from tests.engines.answers.scripted_weights import counted_words, write_counting_model

# The text of the messages alone, so that an answer goes on from the last word of the request.
_CHAT_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def words_after(start: int, count: int) -> list[str]:
    """Return the words that the model writes after a word.

    start: Index of the word in the vocabulary.
    count: Number of words.
    """
    return counted_words(count, first=start + 1).split()


def prompt_to(start: int, count: int) -> str:
    """Return a prompt of so many words that ends with a word of the vocabulary."""
    return counted_words(count, first=start + 1 - count + len(one_token_words()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _CountingRole(VllmRole):
    """vLLM workers that load the weights of the model instead of random ones."""

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        launch = VllmRole.launch(self, model, place, workers)
        # The last of two equal options counts.
        return replace(launch, command=[*launch.command, "--load-format", "safetensors"])


class CountingKind(VllmKind):
    """vLLM on the processors of this machine, with the counting model."""

    role = _CountingRole

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:  # noqa: ARG002 -- the same for each deployment
        write_counting_model(shape.name, directory)
        described = directory / "tokenizer_config.json"
        settings = json.loads(described.read_text()) | {"chat_template": _CHAT_TEMPLATE}
        described.write_text(json.dumps(settings))
