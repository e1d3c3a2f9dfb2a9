"""How a model on this machine is reached: its endpoint, and the process that serves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_catalog import LatencyProfile


@dataclass(frozen=True, slots=True)
class ServedProcess:
    """A frontend or a worker process."""

    name: str
    """Its name, such as ``decode 1 of qwen3-32b-main``."""
    release: str
    """Its deployment's release."""
    process: str
    """The name of its process in the plan."""
    url: str
    """URL of a port of 127.0.0.1 that leads to it. ``/metrics`` has its Prometheus metrics."""
    health_path: str
    """Path that answers 200 once it is ready."""
    log_file: str
    """File with its output."""


@dataclass(frozen=True, slots=True)
class LocalEndpoint:
    """The OpenAI API of one model."""

    model: str
    """Name of the model in requests."""
    base_url: str
    """Such as ``http://127.0.0.1:40123/v1``."""
    metrics_urls: tuple[str, ...]
    """Prometheus metrics of each frontend."""
    profile: LatencyProfile | None
    """Source of the simulated latencies: the first deployment's profile. None if any deployment has none.
    Then the latencies are not those of the accelerators, and throughput and price must not be stated."""
    context_length: int
    """Maximum length of prompt and answer together, in tokens, that all deployments accept."""
    addresses: Mapping[str, str] = field(default_factory=dict)
    """URLs of the model, without ``/v1``, by the first label of the host name that they stand for: its own,
    and those of queues and streaming jobs with deployments of their own."""
    aliases: tuple[str, ...] = ()
    """Further names of the model in requests."""

    @property
    def shown_name(self) -> str:
        """The name in examples of requests: the public one, if there is one."""
        return self.aliases[0] if self.aliases else self.model
