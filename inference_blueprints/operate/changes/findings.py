"""What a comparison of templates finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from inference_blueprints.operate.check_results import CheckResult


@dataclass(frozen=True, slots=True)
class Held:
    """A change that the next step of a deployment makes otherwise, because it would break what runs."""

    check: str
    """Name of the check that found it."""
    stack: str
    """Name of the stack whose new template is edited."""
    message: str
    """What is held, why, and until when."""
    edit: Callable[[dict[str, Any]], None]
    """Edits the new template for this step."""
    imports: bool = False
    """Whether CloudFormation takes over resources that exist."""

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"held     {self.check}: {self.stack}: {self.message}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What `deploy` does before a step, because CloudFormation cannot."""

    check: str
    """Name of the check that found it."""
    stack: str
    """Name of the stack whose change needs it."""
    message: str
    """What is done, and why."""
    act: Callable[[], None]
    """Does it. Raises UserError if it cannot."""

    def __str__(self) -> str:
        """Return check, stack and message on one line."""
        return f"prepares {self.check}: {self.stack}: {self.message}"


Finding = CheckResult | Held | Prepared
