"""Warnings about ways of serving that upstream projects do not call proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType

import inference_catalog as catalog
from inference_blueprints.serving.engines.kv_transfer import kv_transfer
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding


def _sglang_over_efa(resolved: ResolvedWorkers) -> bool:
    return resolved.model.engine.chosen == "sglang" and kv_transfer(resolved) == "libfabric"


def _wide_experts(resolved: ResolvedWorkers) -> bool:
    return resolved.workers.expert_parallel and resolved.nodes > 1


#: Whether workers are served in this way, by the catalogue's name of the way.
_USED: Mapping[str, Callable[[ResolvedWorkers], bool]] = MappingProxyType(
    {"sglangOverEfa": _sglang_over_efa, "wideExpertParallelism": _wide_experts}
)


def experimental_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Warn about each experimental way that a deployment uses.

    roles: The deployment's workers.
    Yields: A warning with the reason and its source.
    """
    # The path of a role is that of its deployment, followed by the topology.
    path = roles[0].path[:5]
    for name, way in catalog.experimental_ways().items():
        if any(map(_USED[name], roles)):
            message = f"{way.what} is experimental: {way.reason} ({way.source}); {way.remedy}"
            yield Finding(path, message, "warning")
