"""Reads the result of `blueprints tune --output json`, to compare it with a measurement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.spec.types import Deployment, Model, Workload
from inference_contracts.errors import UserError
from inference_contracts.number_text import number

#: Workloads whose rate or lengths differ by more than this share are different workloads.
_ALIKE = 0.1
_HOW = "write it with: blueprints tune FILE --output json > FILE"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best configuration of a search."""

    engine: str
    deployments: tuple[Deployment, ...]
    accelerators: int
    """Number of accelerators of all its workers."""
    usd_per_hour: float | None
    usd_per_million_tokens: float | None
    """`usd_per_hour`, `usd_per_million_tokens`: Its cost. None if the price is unknown."""
    time_to_first_token_p90_ms: float
    time_per_output_token_p90_ms: float
    notes: tuple[str, ...]
    """Differences from the measured configuration and workload."""


def read_tuned(path: Path, model: Model, demand: Workload) -> Tuned:
    """Read the best configuration of a search and note its differences from the measured one.

    path: File with the output of ``blueprints tune --output json``.
    demand: The measured workload.
    Raises UserError if the file has another format or is for another model, or if the search found no
        configuration.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        best, name = document["best"], document["model"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"--against: {path}: cannot be read as a search of tune: {error!r}; {_HOW}"
        ) from error
    if name != model.name:
        raise UserError(
            f"--against: {path}: the file is a search for {name}, but the benchmark measures {model.name}"
        )
    if best is None:
        raise UserError(f"--against: {path}: the search found no configuration that meets the objectives")
    try:
        return _tuned(best, (*_other_demand(document["demand"], demand), *_other_layout(best, model)))
    except (LookupError, ValueError, TypeError) as error:
        raise UserError(
            f"--against: {path}: cannot be read as a search of tune: {error!r}; {_HOW}"
        ) from error


def _tuned(best: dict[str, Any], notes: tuple[str, ...]) -> Tuned:
    return Tuned(
        engine=best["engine"],
        deployments=_deployments(best),
        accelerators=best["accelerators"],
        usd_per_hour=best["usdPerHour"],
        usd_per_million_tokens=best["usdPerMillionTokens"],
        time_to_first_token_p90_ms=best["timeToFirstTokenP90Ms"],
        time_per_output_token_p90_ms=best["timePerOutputTokenP90Ms"],
        notes=notes,
    )


def _deployments(best: dict[str, Any]) -> tuple[Deployment, ...]:
    return tuple(Deployment.model_validate(each) for each in best["deployments"])


def _other_demand(tuned: dict[str, Any], measured: Workload) -> tuple[str, ...]:
    """Return a note if the search used another rate or other lengths."""
    searched = Workload.model_validate(tuned)
    names = {
        "peak_requests_per_second": "requests/s",
        "input_tokens": "prompt tokens",
        "output_tokens": "answer tokens",
    }
    different = [
        f"{number(getattr(searched, name))} {label} instead of {number(getattr(measured, name))}"
        for name, label in names.items()
        if abs(getattr(searched, name) - getattr(measured, name)) > _ALIKE * getattr(measured, name)
    ]
    return (f"The search used another workload: {', '.join(different)}.",) if different else ()


def _other_layout(best: dict[str, Any], model: Model) -> tuple[str, ...]:
    """Return a note if the blueprint's workers differ from the best configuration."""
    roles = [(each.aggregated, each.disaggregated) for each in _deployments(best)]
    if roles == [(each.aggregated, each.disaggregated) for each in model.deployments] and (
        best["engine"] == model.engine.chosen
    ):
        return ()
    return ("The tuned configuration differs from the blueprint's: write it with tune --write, then deploy.",)
