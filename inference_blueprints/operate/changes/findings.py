"""What a comparison of templates finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference_blueprints.operate.check_results import CheckResult


@dataclass(frozen=True, slots=True)
class Held:
    """A change that the next step of a deployment makes otherwise, because it would break what runs.

    Parameters
    ----------
    check
        Name of the check that found it.
    stack
        Name of the stack whose new template is edited.
    message
        What is held, why, and until when.
    edit
        Edits the new template for this step.
    imports
        Whether CloudFormation takes over resources that exist.
    """

    check: str
    stack: str
    message: str
    edit: Callable[[dict[str, Any]], None]
    imports: bool = False

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"held     {self.check}: {self.stack}: {self.message}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `deploy` does before a step, because CloudFormation cannot.

    Parameters
    ----------
    check
        Name of the check that found it.
    stack
        Name of the stack whose change needs it.
    message
        What is done, and why.
    act
        Does it. Raises UserError if it cannot.
    """

    check: str
    stack: str
    message: str
    act: Callable[[], None]

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"prepares {self.check}: {self.stack}: {self.message}"


Finding = CheckResult | Held | Prepared
