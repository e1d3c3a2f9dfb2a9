"""Checks of a draft that guesses tokens (EAGLE): whether it can be counted, and fits its model and engine."""

from __future__ import annotations

from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.wording import quote, suggestion
from inference_contracts.errors import Finding

_PLACE = ("speculation", "eagle")
_REPOSITORY = (*_PLACE, "huggingFace")


def draft_findings(model: spec.Model, model_path: tuple[str | int, ...]) -> Iterator[Finding]:
    """Check that the draft is known, and guesses for this model on this engine.

    model_path: Path of the model in the blueprint.
    Yields: An error for each reason why it would not work; a warning for a draft that may change.
    """
    eagle = model.speculation.eagle if model.speculation else None
    if eagle is None:
        return
    name, draft = eagle.hugging_face, model.draft
    if draft is None:
        yield Finding((*model_path, *_REPOSITORY), _unknown(name, model.weights))
    else:
        wrong = [_of_engine(model, draft), _of_weights(model, draft), _of_ranks(model)]
        entry = model.weights.entry
        if entry:
            wrong += [_of_model(model, entry), _of_sizes(entry, draft)]
        for found in wrong:
            if found:
                yield Finding((*model_path, *_REPOSITORY), f"got {quote(name)}, {found}")
    if eagle.revision is None:
        message = (
            f"{quote(name)} has no revision, so workers guess with the newest main branch; set 'revision'"
        )
        yield Finding((*model_path, *_PLACE), message, "warning")


def draft_worker_findings(resolved: ResolvedWorkers, sizing: Sizing) -> Iterator[Finding]:
    """Check that workers can split the draft, and that it serves their longest request.

    sizing: Sizes of the workers.
    Yields: At most one error.
    """
    draft, engine, size = resolved.model.draft, engine_of(resolved), resolved.tensor_parallel_size
    if draft is None or draft.draft is None or resolved.model.engine.chosen not in draft.draft.engines:
        return
    path = (*resolved.model_path, *_REPOSITORY)
    start, engine_name = f"got {quote(draft.name)}, ", resolved.model.engine.chosen
    kv_type = engine.kv_cache_type(resolved)
    if not _splits(draft, size):
        message = (
            f"{start}whose {draft.attention_heads} attention heads, {draft.kv_heads} KV heads and layers of "
            f"width {draft.feed_forward_size} do not divide evenly by the tensorParallelSize {size} of "
            f"{quote(resolved.label)}; change that size, or take another draft"
        )
        yield Finding(path, message)
    elif engine.counts_draft_as_layers and draft.kv_bytes_per_token(kv_type, size) > (
        _reserved(resolved, draft, kv_type)
    ):
        message = (
            f"{start}whose layer caches more per token than a layer of the model; {engine_name} reserves the "
            "memory of the model's layer for it, so it would run out of memory; take another draft"
        )
        yield Finding(path, message)
    elif not engine.extends_draft_context and draft.context_length < sizing.max_model_len:
        length = engine.argument_names.length
        message = (
            f"{start}whose configuration allows {draft.context_length} tokens; workers accept requests of "
            f"{sizing.max_model_len}, and {engine_name} refuses to start; take another draft, or set the "
            f"engine argument '{length}' to at most {draft.context_length}"
        )
        yield Finding(path, message)


def _reserved(resolved: ResolvedWorkers, draft: catalog.Model, kv_type: str) -> float:
    """Return the bytes per token that SGLang reserves for a draft: those of as many layers of the model."""
    size, shape = resolved.tensor_parallel_size, resolved.shape
    guessing = shape.with_draft(draft, cached_alike=True)
    return guessing.kv_bytes_per_token(kv_type, size) - shape.kv_bytes_per_token(kv_type, size)


def _unknown(name: str, weights: spec.Weights) -> str:
    """Say that a repository is not a known draft."""
    if name in weights.entries:
        return (
            f"got {quote(name)}, which is a model and no draft; set a draft that was trained for this model"
        )
    return (
        f"got {quote(name)}, no draft in the catalogue; make an entry from its config.json with "
        f"`blueprints models add`{suggestion(name, weights.drafts)}"
    )


def _of_engine(model: spec.Model, draft: catalog.Model) -> str | None:
    """Say that the engine does not load the draft's class."""
    engine, loading = model.engine.chosen, draft.draft.engines if draft.draft else ()
    if engine in loading or "eagle" not in ENGINES[engine].speculation_methods:
        return None
    return (
        f"whose config.json names {draft.architecture}, which {engine} does not load as a draft; set the "
        f"engine {' or '.join(loading)}, or take another draft"
    )


def _of_weights(model: spec.Model, draft: catalog.Model) -> str | None:
    """Say that workers cannot fetch the draft."""
    if model.weights.in_s3:
        source = "mirror" if model.weights.mirror else "s3"
        return (
            f"but workers read the weights from S3 ({quote(source)}) and fetch drafts only from the Hub; "
            "read the weights from the Hub too, or remove speculation"
        )
    if draft.gated:
        return (
            f"which is gated ({draft.licence}), and workers fetch drafts without a token; take another draft"
        )
    return None


def _of_ranks(model: spec.Model) -> str | None:
    """Say that a deployment has data parallel ranks, on which drafts are not counted."""
    for _, deployment in usable(model.deployments):
        if any(each.data_parallel_size > 1 for each in deployment.workers.values()):
            return (
                f"but the deployment {quote(deployment.name)} has data parallel ranks, on which a draft is "
                "not counted here; set dataParallelSize 1"
            )
    return None


def _of_model(model: spec.Model, entry: catalog.Model) -> str | None:
    """Say that no draft can guess for the model, or that its memory could not be counted."""
    targets = catalog.draft_targets().get(model.engine.chosen)
    if targets is None:
        return None
    if entry.architecture not in targets:
        return (
            f"but {model.engine.chosen} supports no draft for {entry.architecture}, the class of "
            f"{quote(entry.name)}; remove speculation"
        )
    if entry.window_layers and ENGINES[model.engine.chosen].counts_draft_as_layers:
        return (
            f"but layers of {quote(entry.name)} have a sliding window, beside which the KV cache of a draft "
            f"of {model.engine.chosen} is not counted here; remove speculation"
        )
    return None


def _of_sizes(entry: catalog.Model, draft: catalog.Model) -> str | None:
    """Say that the draft was trained for another model."""
    trained = draft.draft.target_hidden_size if draft.draft else 0
    if (trained, draft.vocabulary_size) == (entry.hidden_size, entry.vocabulary_size):
        return None
    return (
        f"which was trained for a model of hidden size {trained} and {draft.vocabulary_size} tokens, but "
        f"{quote(entry.name)} has {entry.hidden_size} and {entry.vocabulary_size}; take a draft of this model"
    )


def _splits(draft: catalog.Model, size: int) -> bool:
    """Whether each device gets whole heads and an even part of the layers."""
    whole = draft.kv_heads % size == 0 or size % draft.kv_heads == 0
    return whole and draft.attention_heads % size == 0 and draft.feed_forward_size % size == 0
