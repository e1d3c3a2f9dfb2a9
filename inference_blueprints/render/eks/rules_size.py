"""Whether the recording rules of a blueprint fit into the event that carries them to the cluster.

The rules are values of Prometheus' chart. CloudFormation sends a chart's values to a Lambda function, and
with an update also those before it; an event is at most 1 MB
(https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html, asynchronous). The ConfigMap of
the rules (1 MiB) and Helm's compressed record of the release (1 MiB, about 5 % of the rules) are reached
later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inference_blueprints.serving.traffic import deployment_traffic
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

#: Half an event, without the other values of the chart.
MAX_BYTES: Final = 500_000
# Upper bounds in bytes; `tests/unit/render/eks/test_rules_size.py` compares them with the rules.
_ALWAYS: Final = 18_000
_PER_ROLE: Final = 570
_PER_OBJECTIVE: Final = 2_700
_PER_LETTER: Final = 24
#: If the models have different programs, more rules list the models that they are about.
_PER_LETTER_MIXED: Final = 40


def rules_bytes(blueprint: Blueprint) -> int:
    """Return an upper bound of the bytes of the recording rules, as CloudFormation sends them."""
    models = blueprint.spec.models
    roles = sum(len(deployment.workers) for model in models for deployment in model.deployments)
    stated = (each for model in models for each in model.objectives.stated)
    objectives = len({(each.kind, each.percentile, each.limit_ms) for each in stated})
    letters = sum(len(model.name) + 1 for model in models)
    # Rules on objectives leave out deployments of batch alone.
    letters += sum(
        len(f'release!~"{model.name}-{deployment.name}",')
        for model in models
        for deployment in (model.deployments if model.objectives.stated else ())
        if not deployment_traffic(blueprint.spec, model, deployment).is_waited_for
    )
    mixed = len({(model.stack.chosen, model.engine.chosen) for model in models}) > 1
    return (
        _ALWAYS
        + _PER_ROLE * roles
        + _PER_OBJECTIVE * objectives
        + (_PER_LETTER_MIXED if mixed else _PER_LETTER) * letters
    )


def rules_findings(blueprint: Blueprint) -> Iterator[Finding]:
    """Yield a finding if the rules of an observed platform are too large.

    blueprint: A blueprint that may have invalid values.
    """
    if blueprint.spec.observability is None:
        return
    size = rules_bytes(blueprint)
    if size > MAX_BYTES:
        models = blueprint.spec.models
        roles = sum(len(deployment.workers) for model in models for deployment in model.deployments)
        message = (
            f"got {len(models)} models with {roles} sets of workers, whose recording rules are up to "
            f"{size // 1000:,} kB; at most {MAX_BYTES // 1000} kB fit into an update by CloudFormation; "
            "give models equal objectives, or divide them among several blueprints"
        )
        yield Finding(("spec", "observability"), message)
