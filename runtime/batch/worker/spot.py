"""Watches for EC2's warning, two minutes before it reclaims a Spot instance."""

from __future__ import annotations

import asyncio
import os
from typing import Final

import aiohttp

from batch.worker.metrics import log

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html: every 5 s.
_PERIOD_SECONDS: Final = 5.0
_LIFETIME_SECONDS: Final = "300"
_SERVICE: Final = "http://169.254.169.254"
_TIMEOUT: Final = aiohttp.ClientTimeout(total=2)


async def wait_for_warning() -> None:
    """Return when the instance is about to be reclaimed."""
    base = os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _SERVICE).rstrip("/")
    async with aiohttp.ClientSession(base, timeout=_TIMEOUT) as session:
        while not await _is_warned(session):
            await asyncio.sleep(_PERIOD_SECONDS)
    log("spot_warning")


async def _is_warned(session: aiohttp.ClientSession) -> bool:
    """Ask the instance metadata service (IMDSv2). The document does not exist until the warning."""
    try:
        lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": _LIFETIME_SECONDS}
        async with session.put("/latest/api/token", headers=lifetime) as answer:
            token = await answer.text()
        with_token = {"X-aws-ec2-metadata-token": token}
        async with session.get("/latest/meta-data/spot/instance-action", headers=with_token) as answer:
            return answer.ok
    except (aiohttp.ClientError, TimeoutError) as error:
        log("spot_warning_unknown", reason=type(error).__name__)
        return False
