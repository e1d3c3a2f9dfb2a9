"""Rules on the front door: its address, its models and its budgets."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, allowed, quote, suggestion
from inference_contracts.errors import Finding

_DOOR: Path = ("spec", "frontDoor")


@rule
def door_has_a_certificate(spec: Spec) -> Iterator[Finding]:
    """Check that the front door has a certificate and a domain: keys and tokens are secrets."""
    if spec.front_door is None:
        return
    for key, value in (("certificateArn", spec.network.certificate_arn), ("domain", spec.network.domain)):
        if value is None:
            message = (
                "is missing: callers of the front door send keys and tokens, so it answers over HTTPS only; "
                "set 'certificateArn' and 'domain'"
            )
            yield Finding(("spec", "network", key), message)


@rule
def door_models_exist(spec: Spec) -> Iterator[Finding]:
    """Check that targets of the front door are models and deployments of the blueprint."""
    names = [model.name for model in spec.models]
    for index, public in usable(spec.front_door.models if spec.front_door else ()):
        for place, target in usable(public.to):
            path = (*_DOOR, "models", index, "to", place)
            yield from _unknown("model", target.model, names, (*path, "model"))
            model = next((each for each in spec.models if each.name == target.model), None)
            if model and target.deployment is not None:
                own = [each.name for each in model.deployments]
                yield from _unknown("deployment", target.deployment, own, (*path, "deployment"))


@rule
def door_teams_exist(spec: Spec) -> Iterator[Finding]:
    """Check that teams that the front door names are in the blueprint."""
    if spec.front_door is None:
        return
    names = [team.name for team in spec.teams]
    for index, public in usable(spec.front_door.models):
        for place, team in usable(public.teams or ()):
            yield from _unknown("team", team, names, (*_DOOR, "models", index, "teams", place))
    for index, budget in usable(spec.front_door.budgets):
        path = (*_DOOR, "budgets", index)
        if budget.team is not None:
            yield from _unknown("team", budget.team, names, (*path, "team"))
        if budget.project is not None:
            yield from _unknown("team", budget.project.split("/")[0], names, (*path, "project"))


def _unknown(noun: str, name: str, names: Collection[str], path: Path) -> Iterator[Finding]:
    """Yield a finding for a name that nothing has."""
    if name not in names:
        known = allowed(noun, names) if names else f"there are no {noun}s; add it to spec.{noun}s"
        yield Finding(path, f"got {quote(name)}, {known}{suggestion(name, names)}")
