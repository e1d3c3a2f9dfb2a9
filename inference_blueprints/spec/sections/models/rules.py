"""Rules on names: they are unique, and the names derived from them are within the limits of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic.alias_generators import to_snake

import inference_catalog as catalog
from inference_blueprints.spec.derived import divided, each_deployment
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.types import (
    FIRST_TOKEN,
    LATENCY_NAMES,
    WHOLE_REQUEST,
    LatencyPercentiles,
    Model,
    Objective,
    Spec,
    mean_tokens,
)
from inference_blueprints.spec.wording import Path, listing, quote
from inference_contracts.errors import Finding

# Rules on what a model does: it writes text, turns each input into a vector, or scores texts.

_NO_TEXT = "a model with 'task: {task}' writes no text; remove it"
_SETTINGS = {
    "real_time": _NO_TEXT,
    "speculation": _NO_TEXT,
    "parsers": _NO_TEXT,
    "chat": _NO_TEXT,
    "media": "a model with 'task: {task}' reads only text here; remove it",
    "kv_cache": "a model with 'task: {task}' computes each input once and reads no cache back; remove it",
}
_KEYS = {"kv_cache": "kvCache", "real_time": "realTime"}
#: What classes are for that have one task, as in "a class that …".
_ONLY = {"embed": "turns inputs into vectors", "rerank": "scores texts"}


@rule
def task_is_one_of_the_class(spec: Spec) -> Iterator[Finding]:
    """Check that a model does what its class is for: encoders write no text, and rerankers only score."""
    for index, model in usable(spec.models):
        entry = model.weights.entry
        if entry is None or entry.pipeline or model.makes_images:
            continue
        tasks = catalog.tasks_of(entry.architecture)
        if model.task in tasks or not tasks:
            continue
        if len(tasks) == 1:
            message = (
                f"got {quote(model.task)} for {entry.name}, whose class {entry.architecture} only "
                f"{_ONLY[tasks[0]]}; set 'task: {tasks[0]}'"
            )
        else:
            message = (
                f"got {quote(model.task)} for {entry.name}, whose class {entry.architecture} has no "
                f"classifier; name a model of a class such as Qwen3ForSequenceClassification, or set one of "
                f"{listing(tasks)}"
            )
        yield Finding(("spec", "models", index, "task"), message)


@rule
def answers_have_a_length(spec: Spec) -> Iterator[Finding]:
    """Check that the length of answers is stated for a model that writes text, and for no other."""
    for index, model in usable(spec.models):
        path = ("spec", "models", index, "workload")
        if model.workload is None:
            continue
        length = mean_tokens(model.workload.output_tokens)
        if model.task == "generate" and not length:
            message = (
                "got no 'outputTokens', the mean length of answers; state it as 1 or more, or set 'task: "
                "embed' if the model turns inputs into vectors, or 'task: rerank' if it scores texts"
            )
            yield Finding(path, message)
        elif model.only_reads and length:
            yield Finding((*path, "outputTokens"), f"got {length}, but {_NO_TEXT.format(task=model.task)}")


@rule
def model_that_reads_has_no_settings_of_answers(spec: Spec) -> Iterator[Finding]:
    """Check that an embedding or reranking model has no settings of answers or caches."""
    for path, model in _reading(spec):
        for name, message in _SETTINGS.items():
            if getattr(model, name) is not None:
                yield Finding((*path, _KEYS.get(name, name)), message.format(task=model.task))
        if model.workload and model.workload.shared_prefix_ratio:
            message = (
                f"got {model.workload.shared_prefix_ratio:g}, but the plan of a model with 'task: "
                f"{model.task}' does not count on cached prefixes; remove it"
            )
            yield Finding((*path, "workload", "sharedPrefixRatio"), message)
        for each in model.objectives.stated:
            yield Finding((*path, "objectives", *each.path), _NO_TEXT.format(task=model.task))


# Rules on objectives.


@rule
def objective_is_stated_once(spec: Spec) -> Iterator[Finding]:
    """Check that each latency with objectives has a percentile, and that none is stated twice."""
    for index, model in usable(spec.models):
        path = ("spec", "models", index, "objectives")
        for kind in LATENCY_NAMES:
            section = getattr(model.objectives, to_snake(kind))
            if section is not None and all(
                getattr(section, name) is None for name in LatencyPercentiles.model_fields
            ):
                yield Finding((*path, kind), "got no percentile; state at least one of p50, p90, p95 and p99")
        seen: dict[tuple[str, float], Objective] = {}
        for each in model.objectives.stated:
            first = seen.setdefault((each.kind, each.percentile), each)
            if first is not each:
                message = (
                    f"got {each.limit_ms:g}, but '{first.key}' states the same percentile, "
                    f"{first.limit_ms:g}; remove one of them"
                )
                yield Finding((*path, *each.path), message)


@rule
def objectives_agree(spec: Spec) -> Iterator[Finding]:
    """Check that no percentile has a lower limit than a smaller one, and no request than its first token."""
    for index, model in usable(spec.models):
        stated = model.objectives.stated
        for each in stated:
            # Of each request, the first token comes no later than the whole answer.
            kinds = (each.kind, FIRST_TOKEN) if each.kind == WHOLE_REQUEST else (each.kind,)
            for kind in kinds:
                below = [
                    other
                    for other in stated
                    if other.kind == kind
                    and (other.percentile < each.percentile or kind != each.kind)
                    and other.percentile <= each.percentile
                    and other.limit_ms > each.limit_ms
                ]
                if below:
                    largest = max(below, key=lambda other: other.limit_ms)
                    message = (
                        f"got {each.limit_ms:g}, less than {largest.limit_ms:g} of '{largest.key}', which "
                        "cannot take longer; raise this one, or lower the other"
                    )
                    yield Finding(("spec", "models", index, "objectives", *each.path), message)


@rule
def model_that_reads_runs_on_vllm(spec: Spec) -> Iterator[Finding]:
    """Check the engine of an embedding or reranking model, and that it reads only text."""
    for path, model in _reading(spec):
        if model.engine.vllm is None:
            message = (
                f"got {quote(model.engine.chosen)}, a model with 'task: {model.task}' runs only on vllm "
                "here; set 'engine: {vllm: {}}'"
            )
            yield Finding((*path, "engine"), message)
        entry = model.weights.entry
        if entry and entry.vision:
            message = (
                f"got {quote(model.task)} for {entry.name}, which also reads images; here, models with this "
                "task read only text; name another model"
            )
            yield Finding((*path, "task"), message)


@rule
def reranking_model_has_no_router(spec: Spec) -> Iterator[Finding]:
    """Check that vLLM's own server answers for a reranking model.

    Dynamo's frontend 1.6.1 has no route for scores, and the parser of llm-d's router reads chat, completions
    and embeddings (sources: docs/serving.md, "Embedding models").
    """
    for path, model in _reading(spec):
        if model.task == "rerank" and not model.stack.direct:
            message = (
                f"got {quote(model.stack.chosen)}, whose router has no path for scores; set 'stack: "
                "{direct: {}}', where vLLM's own server answers /v1/rerank and /v1/score"
            )
            yield Finding((*path, "stack"), message)


@rule
def embedding_model_is_routed_without_caches(spec: Spec) -> Iterator[Finding]:
    """Check that requests to an embedding model are not routed by events of caches or by tokens.

    Dynamo's frontend 1.6.1 does not list an embedding worker if it routes KV-aware: "frontend tokenization"
    would be needed. Its workers publish no events (``dynamo/vllm/worker_factory.py``). llm-d's precise scorer
    asks a worker of chat for the tokens of a prompt.
    """
    for path, model in _reading(spec):
        if model.task != "embed":
            continue
        if model.stack.dynamo and model.routing.kv_aware:
            message = (
                "got 'kvAware', but Dynamo routes embeddings only in turn; set 'routing: {roundRobin: {}}', "
                "or 'stack: {llmD: {}}'"
            )
            yield Finding((*path, "routing"), message)
        if model.stack.llm_d and model.stack.llm_d.prefix_scorer == "precise":
            message = (
                "got 'precise', which needs cache events and a server that renders prompts of a chat; set "
                "'approximate', or remove it"
            )
            yield Finding((*path, "stack", "llmD", "prefixScorer"), message)


@rule
def workers_that_read_are_whole(spec: Spec) -> Iterator[Finding]:
    """Check that a worker computes a whole input, in one stage and without ranks.

    Dynamo's embedding worker is only aggregated (``dynamo/vllm/backend_args.py`` of ai-dynamo 1.6.1).
    """
    for path, model in _reading(spec):
        for index, deployment in usable(model.deployments):
            place = (*path, "deployments", index)
            if deployment.disaggregated:
                message = (
                    f"got 'disaggregated', but a model with 'task: {model.task}' has no decode phase; make "
                    "it 'aggregated'"
                )
                yield Finding((*place, "disaggregated"), message)
            elif deployment.aggregated:
                yield from divided(deployment.aggregated, (*place, "aggregated"), model.task)


@rule
def queues_have_a_model_that_writes(spec: Spec) -> Iterator[Finding]:
    """Check that the model of a queue writes text: the plan sizes a job's results by its answers."""
    others = {model.name: model.task for _, model in usable(spec.models) if model.only_reads}
    for index, queue in usable(spec.batch.queues if spec.batch else ()):
        if task := others.get(queue.model):
            message = (
                f"got {quote(queue.model)}, a model with 'task: {task}'; queues are sized by the length of "
                "answers in tokens, and this model writes none. Name a model that writes text, and send "
                "requests to this one straight to its endpoint"
            )
            yield Finding(("spec", "batch", "queues", index, "model"), message)


def _reading(spec: Spec) -> Iterator[tuple[Path, Model]]:
    """Yield the models that answer with numbers, with their places."""
    for index, model in usable(spec.models):
        if model.only_reads:
            yield ("spec", "models", index), model


#: Dynamo's operator takes graph and service names of 45 characters together (ai-dynamo/dynamo,
#: `validateServiceNameLength`), and the longest service is called `frontend`. With the hashes of a
#: Deployment's pods that makes 63, the length of a Kubernetes label; Helm's 53 is above it.
MAXIMUM_RELEASE = 45 - len("frontend")


@rule
def pools_differ(spec: Spec) -> Iterator[Finding]:
    """Check that pools have different names."""
    yield from duplicate_names(
        "pool", {("spec", "pools", index, "name"): pool.name for index, pool in usable(spec.pools)}
    )


@rule
def models_differ(spec: Spec) -> Iterator[Finding]:
    """Check that models have different names."""
    yield from duplicate_names(
        "model", {("spec", "models", index, "name"): model.name for index, model in usable(spec.models)}
    )


@rule
def deployments_differ(spec: Spec) -> Iterator[Finding]:
    """Check that the deployments of a model have different names."""
    for index, model in usable(spec.models):
        path = ("spec", "models", index, "deployments")
        names: dict[Path, str] = {
            (*path, place, "name"): item.name for place, item in usable(model.deployments)
        }
        yield from duplicate_names("deployment", names)


@rule
def releases_differ(spec: Spec) -> Iterator[Finding]:
    """Check that deployments of different models have different release names."""
    releases: dict[str, str] = {}
    for deployment in each_deployment(spec):
        first = releases.setdefault(deployment.release, deployment.model.name)
        if first != deployment.model.name:
            message = (
                f"has the release name {quote(deployment.release)}, like a deployment of model "
                f"{quote(first)}; "
                "rename one of them"
            )
            yield Finding((*deployment.path, "name"), message)


@rule
def releases_are_short(spec: Spec) -> Iterator[Finding]:
    """Check that release names are short enough for Helm, Dynamo and Kubernetes."""
    for deployment in each_deployment(spec):
        length = len(deployment.release)
        if length > MAXIMUM_RELEASE:
            message = (
                f"has the release name {quote(deployment.release)} of {length} characters, at most "
                f"{MAXIMUM_RELEASE} are allowed; shorten this name or the model's"
            )
            yield Finding((*deployment.path, "name"), message)


@rule
def deployments_fit_the_load_balancer(spec: Spec) -> Iterator[Finding]:
    """Check that the load balancer has target groups for all deployments."""
    count = sum(1 for _ in each_deployment(spec))
    most = catalog.network_quotas()["elasticloadbalancing.targetGroups"].value
    if count > most:
        message = (
            f"got {count} deployments in all, the models' load balancer supports {most:,.0f}; "
            "create a second platform for some of the models"
        )
        yield Finding(("spec", "models"), message)


@rule
def one_topology(spec: Spec) -> Iterator[Finding]:
    """Check that a deployment is either aggregated or disaggregated."""
    for placed in each_deployment(spec):
        given = [
            quote(key)
            for key in ("aggregated", "disaggregated")
            if getattr(placed.deployment, key) is not None
        ]
        if len(given) != 1:
            got = " and ".join(given) or "neither"
            yield Finding(placed.path, f"got {got}, expected exactly one of 'aggregated', 'disaggregated'")
