"""What tests of upgrades ask again and again."""

from __future__ import annotations

from pathlib import Path

from inference_blueprints.deployment.observation import Observation
from inference_blueprints.deployment.upgrade.checks import examine
from inference_blueprints.deployment.upgrade.proposal import Proposal, propose


def proposed(file: Path, to: str | None = None, *pools: str) -> Proposal:
    return propose(str(file), to, pools)


def seen(upgrade: Proposal, severity: str) -> list[str]:
    """Return what the checks say with one severity."""
    return [f"{each.check}: {each.message}" for each in examine(upgrade) if each.severity == severity]


def observation(upgrade: Proposal, check: str) -> Observation:
    [found] = [each for each in examine(upgrade) if each.check == check]
    return found
