"""Where a model answers on this machine, and how far its speed can be trusted."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.catalog import LatencyProfile


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """The OpenAI API of one model.

    Parameters
    ----------
    model
        The name to ask for.
    base_url
        Such as ``http://127.0.0.1:40123/v1``.
    metrics_urls
        Prometheus metrics of each frontend.
    profile
        What the simulated latencies come from: the first deployment's profile. None when any deployment has
        none: then latencies are not those of the accelerators, and throughput and price must not be stated.
    context_length
        Prompt and answer together at the most, in tokens.
    """

    model: str
    base_url: str
    metrics_urls: tuple[str, ...]
    profile: LatencyProfile | None
    context_length: int
