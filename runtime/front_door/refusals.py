"""What callers are told when a request is refused: OpenAI's envelope and codes, and what to do.

Source of the codes: https://platform.openai.com/docs/guides/error-codes. Clients of OpenAI read ``type`` and
``code``, and wait for ``Retry-After``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from inference_contracts import door_headers
from inference_contracts.door_terms import BudgetScope

_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    411: "invalid_request_error",
    429: "rate_limit_error",
    503: "server_error",
}


#: Longest time that OpenAI's clients wait (``_calculate_retry_timeout`` in openai-python).
_LONGEST_RETRY_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class DoorRefusal:
    """An answer in place of that of a model."""

    status: int
    code: str
    """What programs tell errors apart by."""
    message: str
    """What is wrong, and what to do."""
    retry_after: int | None = None
    """Seconds after which the same request may be admitted. None if waiting does not help."""
    parameter: str | None = None
    """Field of the body that is wrong."""
    reason: str = ""
    """What metrics count it as. Empty for its code."""
    scope: BudgetScope | None = None
    """What the budget limits that refuses the request. None if no budget does."""

    def headers(self) -> dict[str, str]:
        """Return the headers of the answer.

        Clients of OpenAI ask again by themselves, unless ``x-should-retry`` says no: after a long time, or if
        nothing changes by waiting.
        """
        found = {"content-type": "application/json"}
        if self.retry_after is not None:
            found["retry-after"] = str(self.retry_after)
        if self.scope is not None:
            found[door_headers.BUDGET_SCOPE] = self.scope
        if self.retry_after is None or self.retry_after > _LONGEST_RETRY_SECONDS:
            found["x-should-retry"] = "false"
        return found

    def body(self) -> bytes:
        """Return OpenAI's envelope."""
        kind = "insufficient_quota" if self.code == "insufficient_quota" else _TYPES[self.status]
        error = {"message": self.message, "type": kind, "param": self.parameter, "code": self.code}
        return json.dumps({"error": error}, separators=(",", ":")).encode()
