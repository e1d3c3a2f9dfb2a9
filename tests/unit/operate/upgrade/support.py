"""What tests of upgrades ask again and again."""

from __future__ import annotations

from pathlib import Path

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.upgrade.proposal import Proposal, propose
from inference_blueprints.operate.upgrade.upgrade_checks import check_upgrade


def proposed(file: Path, to: str | None = None, *pools: str) -> Proposal:
    return propose(str(file), to, pools)


def seen(upgrade: Proposal, severity: str) -> list[str]:
    """Return what the checks say with one severity."""
    return [f"{each.check}: {each.message}" for each in check_upgrade(upgrade) if each.severity == severity]


def result(upgrade: Proposal, check: str) -> CheckResult:
    [found] = [each for each in check_upgrade(upgrade) if each.check == check]
    return found
