"""Says once, as a line of JSON, what keeps a part of the process from its work."""

from __future__ import annotations

import json
import sys


class Trouble:
    """What keeps a part from its work, until it is over.

    event: What does not work, such as ``checkpoint not written``.
    """

    def __init__(self, event: str) -> None:
        self._event, self._reason = event, ""

    def report(self, reason: object) -> None:
        """Report why, unless it is the reason that was reported last."""
        if self._reason != str(reason):
            self._reason = str(reason)
            event = {"event": self._event, "reason": self._reason}
            print(json.dumps(event), file=sys.stderr, flush=True)

    def is_over(self) -> None:
        """Note that it works again."""
        self._reason = ""
