"""The account and the blueprint that are checked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.spec.types import Blueprint, Environment


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The account and the blueprint that are checked.

    Parameters
    ----------
    account
        Account for the deployment.
    blueprint
        The blueprint.
    name_or_path
        Name or path of the blueprint, for commands.
    now
        Time of the check, with a time zone.
    """

    account: Account
    blueprint: Blueprint
    name_or_path: str
    now: datetime

    @property
    def environment(self) -> Environment:
        """The blueprint's section."""
        return self.blueprint.spec.environment

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the blueprint's region."""
        return f"aws {words} --region {self.environment.region}"
