"""LMCache behind real vLLM: documents that the engine's own KV cache has lost come back from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import openai
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.types import Blueprint
from inference_local.serving.local_deployment import WorkerPlace
from inference_local.serving.process_commands import Launch
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind, VllmRole
from tests.engines.running import RunningEngines, running_engines
from tests.engines.test_kv_cache import BLOCK, COMPUTED, RECEIVED, counted, in_whole_blocks, text

pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("engines"), pytest.mark.timeout(3600)]

_BLUEPRINT = "long-context-kv-cache"
#: The workers that keep KV cache, by the name of their process, for each layout of the deployment.
_LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "worker": {"aggregated": {"pool": "h200", "replicas": 1, "tensorParallelSize": 1}},
    "prefill": {
        "disaggregated": {
            role: {"pool": "h200", "replicas": 1, "tensorParallelSize": 1} for role in ("prefill", "decode")
        }
    },
}
# An engine with room for two documents (one block is always empty), so that the third replaces the first.
_SMALL_CACHE = ("--num-gpu-blocks-override", "33", "--max-model-len", "2048")
_DOCUMENTS = 4
#: Prompt tokens that the engine found in its own KV cache.
_KEPT = "vllm:prefix_cache_hits_total"


@dataclass(frozen=True, slots=True, kw_only=True)
class _SmallCacheRole(VllmRole):
    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        launch = VllmRole.launch(self, model, place, workers)
        # The last of two equal options counts.
        return replace(launch, command=[*launch.command, *_SMALL_CACHE])


class _SmallCacheKind(VllmKind):
    """vLLM on the processors of this machine, with a small KV cache of its own."""

    role = _SmallCacheRole


@dataclass(frozen=True, slots=True)
class KeptDocuments:
    """A deployment, and the name of its process that keeps KV cache."""

    running: RunningEngines
    process: str

    def ask(self, number: int) -> tuple[str, openai.types.CompletionUsage]:
        """Ask about a document, and return the answer and its usage."""
        [endpoint] = self.running.endpoints
        with openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0, timeout=600) as client:
            answer = client.completions.create(
                model=endpoint.model,
                prompt=text(number),
                max_tokens=8,
                temperature=0,
                extra_body={"ignore_eos": True},
            )
        assert answer.usage
        return answer.choices[0].text, answer.usage

    def counters(self) -> dict[str, float]:
        """Return the counters of the worker."""
        [found] = counted(self.running, self.process)
        return found


@pytest.fixture(scope="module", params=_LAYOUTS)
def documents(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KeptDocuments]:
    """Return the shipped blueprint with one worker per role."""
    document = load_blueprint(_BLUEPRINT).blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0]["deployments"] = [{"name": "documents", **_LAYOUTS[request.param]}]
    blueprint = Blueprint.model_validate(document)
    directory = tmp_path_factory.mktemp(request.param)
    with running_engines(blueprint, directory, _SmallCacheKind(blueprint)) as running:
        yield KeptDocuments(running, request.param)


def test_lost_documents_come_back_from_lmcache(documents: KeptDocuments) -> None:
    """LMCache returns every whole block of documents that vLLM has lost, and the answers are the same."""
    before = documents.counters()
    first = [documents.ask(number) for number in range(_DOCUMENTS)]
    between = documents.counters()
    assert between[RECEIVED] == before[RECEIVED], "nothing was kept of documents that are new"
    second = [documents.ask(number) for number in range(_DOCUMENTS)]
    after = documents.counters()
    whole = sum(in_whole_blocks(usage.prompt_tokens) for _, usage in first)
    prompts = sum(usage.prompt_tokens for _, usage in first)
    returned, kept = (after[name] - between[name] for name in (RECEIVED, _KEPT))
    assert returned + kept == whole
    assert returned > 0.9 * whole, "the engine has lost most blocks"
    assert after[COMPUTED] - between[COMPUTED] == prompts - whole
    assert [answer for answer, _ in second] == [answer for answer, _ in first]


def test_copies_are_on_disk_in_the_folder_of_the_worker(documents: KeptDocuments) -> None:
    """LMCache has written the documents to the worker's folder, which stands for NVMe."""
    found = list(Path(documents.running.directory).glob("*/kv-cache/*/*.data"))
    assert len({path.parent for path in found}) == 1
    usages = [documents.ask(number)[1] for number in range(_DOCUMENTS)]
    assert len(found) == sum(in_whole_blocks(usage.prompt_tokens) // BLOCK for usage in usages)
