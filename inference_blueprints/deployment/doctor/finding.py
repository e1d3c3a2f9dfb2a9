"""What an examination says, and what it looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from inference_blueprints.deployment.account import Account
from inference_blueprints.spec.types import Blueprint, Environment

Severity = Literal["ok", "unknown", "warning", "error"]


@dataclass(frozen=True, slots=True)
class AccountFinding:
    """One line of an examination.

    Parameters
    ----------
    check
        What was looked at, such as ``quotas``.
    severity
        ``error`` would break a deployment or leave models without nodes; ``warning`` is doubtful; ``unknown``
        could not be looked at; ``ok`` is as it should be.
    message
        What was found.
    command
        What mends it; None where nothing has to, or no command can.
    """

    check: str
    severity: Severity
    message: str
    command: str | None = None

    def __str__(self) -> str:
        """Return severity, check, message and command on one line."""
        mend = f"; mend it with: {self.command}" if self.command else ""
        return f"{self.severity:7}  {self.check}: {self.message}{mend}"


@dataclass(frozen=True, slots=True)
class Patient:
    """What is examined.

    Parameters
    ----------
    account
        Where the blueprint is to be deployed.
    blueprint
        What is to be deployed.
    name_or_path
        How the user named it, for commands.
    """

    account: Account
    blueprint: Blueprint
    name_or_path: str

    @property
    def environment(self) -> Environment:
        """The blueprint's section."""
        return self.blueprint.spec.environment

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the blueprint's region.

        Parameters
        ----------
        words
            What follows ``aws``.
        """
        return f"aws {words} --region {self.environment.region}"
