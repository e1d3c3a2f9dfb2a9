"""Delays the response to a request for a stack's status until the operation ends, up to a limit.

The CDK CLI polls every five seconds. In the emulator a stack is ready after one to fifteen seconds, so a
deployment would spend most of its time between two polls. No client times out before half a minute.
"""

import asyncio
import re
import time
from typing import Any

from ministack.services import cloudformation

_WAIT_SECONDS = 30.0
_POLL_SECONDS = 0.05
_UNFINISHED = re.compile(rb"<StackStatus>(?!REVIEW_)[A-Z_]+_IN_PROGRESS</StackStatus>")
_PLAIN_HANDLER = cloudformation.handle_request


async def _wait_for_final_status(
    method: str, path: str, headers: dict[str, str], body: bytes, query: dict[str, Any]
) -> tuple[int, dict[str, str], bytes]:
    """Poll while an operation is in progress."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        status, answer_headers, answer = await _PLAIN_HANDLER(method, path, headers, body, query)
        is_final = b"Action=DescribeStacks" not in body or not _UNFINISHED.search(answer)
        if is_final or time.monotonic() > deadline:
            return status, answer_headers, answer
        await asyncio.sleep(_POLL_SECONDS)


def apply() -> None:
    """Apply the patch."""
    cloudformation.handle_request = _wait_for_final_status
