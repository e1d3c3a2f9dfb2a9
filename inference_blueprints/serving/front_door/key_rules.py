"""What API keys of a platform may be, from the blueprint: for the command `keys` and for the API of keys."""

from __future__ import annotations

from inference_blueprints.serving.front_door.ways import public_models
from inference_blueprints.spec.types import Blueprint
from inference_contracts.door_configuration import DoorTeam
from inference_contracts.door_key_acts import KeyModel, KeyRules


def key_rules(blueprint: Blueprint) -> KeyRules | None:
    """Return the rules. None if the blueprint has no front door, or one without API keys.

    blueprint: A blueprint that the loader accepted.
    """
    spec = blueprint.spec
    if spec.front_door is None or spec.front_door.identity.api_keys is None:
        return None
    models = tuple(
        KeyModel(each.name, None if each.teams is None else tuple(each.teams)) for each in public_models(spec)
    )
    return KeyRules(
        platform=blueprint.metadata.name,
        teams=tuple(DoorTeam(team.name, tuple(team.principals)) for team in spec.teams),
        models=models,
        max_days=spec.front_door.identity.api_keys.max_days,
        rotation_hours=spec.front_door.identity.api_keys.rotation_hours,
    )
