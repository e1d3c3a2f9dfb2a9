"""Errors of the filter, in the form of OpenAI's API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

_FIRST_SERVER_ERROR: Final = 500


@dataclass(eq=False)
class RefusedRequestError(Exception):
    """A request that is not passed on."""

    status: int
    """Status of the answer."""
    message: str
    """What was found, what is allowed, what to do."""
    code: str
    """Code for programs."""
    param: str | None = None
    """The field. None for the whole request."""
    retry_after: int | None = None
    """Seconds after which the caller may ask again. None if that does not help."""

    @property
    def body(self) -> bytes:
        """The body of the answer."""
        kind = "invalid_request_error" if self.status < _FIRST_SERVER_ERROR else "server_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return json.dumps({"error": error}).encode()
