"""Results of checks of an account or a platform, one line per result.

A check that fails does not prevent the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.operate.aws.account import describe_error
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

Severity = Literal["ok", "unknown", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One result of a check."""

    check: str
    """Name of the check, such as ``quotas``."""
    severity: Severity
    """``error`` breaks a deployment or prevents models from answering; ``warning`` may be a problem;
    ``unknown`` could not be checked; ``ok`` is right."""
    message: str
    command: str | None = None
    """Command that fixes it; None if nothing needs a fix, or no command can fix it."""

    def __str__(self) -> str:
        """Return severity, check, message and command on one line."""
        advice = f"; run: {self.command}" if self.command else ""
        return f"{self.severity:7}  {self.check}: {self.message}{advice}"


Subject = TypeVar("Subject")
Checks = Mapping[str, Callable[[Subject], Iterator[CheckResult]]]


def run_checks(checks: Checks[Subject], subject: Subject) -> Iterator[CheckResult]:
    """Iterate over the results of all checks; a check that fails has a result and does not stop the others.

    checks: Checks by the name in their results, in the order of the output.
    subject: The checked object.
    """
    for name, check in checks.items():
        try:
            yield from check(subject)
        except (ClientError, BotoCoreError) as error:
            yield CheckResult(name, "unknown", f"could not be checked: {describe_error(error)}")
        except (KubectlFailed, UserError) as error:
            yield CheckResult(name, "unknown", f"could not be checked: {' '.join(str(error).split())}")
