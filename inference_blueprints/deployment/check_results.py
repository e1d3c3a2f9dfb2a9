"""What checks of something that is deployed, or is to be, say: a line each, whoever looked.

A check that cannot look hides no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.deployment.aws.account import described
from inference_blueprints.deployment.kubernetes.kubectl import KubectlFailed
from inference_blueprints.errors import UserError

Severity = Literal["ok", "unknown", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of an examination.

    Parameters
    ----------
    check
        What was looked at, such as ``quotas``.
    severity
        ``error`` breaks a deployment or keeps models from answering; ``warning`` is doubtful; ``unknown``
        could not be looked at; ``ok`` is as it should be.
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


Subject = TypeVar("Subject")
Checks = Mapping[str, Callable[[Subject], Iterator[CheckResult]]]


def run_checks(checks: Checks[Subject], subject: Subject) -> Iterator[CheckResult]:
    """Iterate over what all checks see; one that is refused or fails says so and hides no other.

    Parameters
    ----------
    checks
        By the name that their results carry, in the order in which they are shown.
    subject
        What they look at.
    """
    for name, check in checks.items():
        try:
            yield from check(subject)
        except (ClientError, BotoCoreError) as error:
            yield CheckResult(name, "unknown", f"could not be looked at: {described(error)}")
        except (KubectlFailed, UserError) as error:
            yield CheckResult(name, "unknown", f"could not be looked at: {' '.join(str(error).split())}")
