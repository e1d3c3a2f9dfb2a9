"""The account and the blueprint that are checked."""

from __future__ import annotations

from datetime import datetime

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.spec.types import Blueprint, Environment
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class DoctorContext:
    """The account and the blueprint that are checked."""

    account: Account
    """Account for the deployment."""
    blueprint: Blueprint
    name_or_path: str
    """Name or path of the blueprint, for commands."""
    now: datetime
    """Time of the check, with a time zone."""

    @property
    def environment(self) -> Environment:
        """The blueprint's section."""
        return self.blueprint.spec.environment

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the blueprint's region."""
        return f"aws {words} --region {self.environment.region}"
