"""What `blueprints tune --output json` promised, to stand beside what is measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.errors import UserError
from inference_blueprints.spec.types import Deployment, Model, Workload

#: Two demands whose rate or lengths differ by more are two demands.
_ALIKE = 0.1
_HOW = "write it with: blueprints tune FILE --output json > FILE"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best configuration of a search.

    Parameters
    ----------
    engine, deployments
        What it runs.
    accelerators
        Devices of all its workers.
    usd_per_hour, usd_per_million_tokens
        What it costs; None where the price is unknown.
    time_to_first_token_p90_ms, time_per_output_token_p90_ms
        Simulated.
    notes
        Where it is not the same as what is measured.
    """

    engine: str
    deployments: tuple[Deployment, ...]
    accelerators: int
    usd_per_hour: float | None
    usd_per_million_tokens: float | None
    time_to_first_token_p90_ms: float
    time_per_output_token_p90_ms: float
    notes: tuple[str, ...]


def read_tuned(path: Path, model: Model, demand: Workload) -> Tuned:
    """Read the best configuration of a search and say where it is another than the measured one.

    Parameters
    ----------
    path
        What ``blueprints tune --output json`` printed.
    model
        What is measured.
    demand
        What is asked of it.

    Raises
    ------
    UserError
        If it is no such file, of another model, or the search found nothing.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        best, name = document["best"], document["model"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"--against: {path}: cannot be read as a search of tune: {error!r}; {_HOW}"
        ) from error
    if name != model.name:
        raise UserError(f"--against: {path}: is a search for {name}, and {model.name} is measured")
    if best is None:
        raise UserError(f"--against: {path}: the search found no configuration that keeps the objectives")
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
    """Say so where the search was for another rate or other lengths."""
    searched = Workload.model_validate(tuned)
    names = {
        "peak_requests_per_second": "requests a second",
        "input_tokens": "tokens of a prompt",
        "output_tokens": "tokens of an answer",
    }
    different = [
        f"{getattr(searched, name):,.3g} {words} and not {getattr(measured, name):,.3g}"
        for name, words in names.items()
        if abs(getattr(searched, name) - getattr(measured, name)) > _ALIKE * getattr(measured, name)
    ]
    return (f"Tuned was for another demand: {', '.join(different)}.",) if different else ()


def _other_layout(best: dict[str, Any], model: Model) -> tuple[str, ...]:
    """Say so where the blueprint has other workers than the search found best."""
    roles = [(each.aggregated, each.disaggregated) for each in _deployments(best)]
    if roles == [(each.aggregated, each.disaggregated) for each in model.deployments] and (
        best["engine"] == model.engine.chosen
    ):
        return ()
    return ("Tuned is another configuration than the blueprint's: write it with tune --write and deploy.",)
