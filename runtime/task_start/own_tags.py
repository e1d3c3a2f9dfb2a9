"""Tags the task with the address of its metrics, so that Prometheus finds it with the ECS API.

Calls ``TagResource`` of the Amazon ECS API, signed with Signature Version 4 (AWS IAM User Guide, "Create a
signed AWS API request").
"""

from __future__ import annotations

import hashlib
import hmac
import json
import random
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import urlsplit

from task_start.start_document import TaskStartError
from task_start.task_credentials import read_credentials
from weights.s3_reader import Credentials

_ATTEMPTS = 5
_TIMEOUT_SECONDS = 5
_SERVER_ERROR = 500
# Engines may have variables of a proxy that leads nowhere.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_TARGET = "AmazonEC2ContainerServiceV20141113.TagResource"
_TYPE = "application/x-amz-json-1.1"


def tag_task(
    arn: str, tags: Mapping[str, str], environment: Mapping[str, str], *, pause_seconds: float = 0.5
) -> None:
    """Tag the task. ECS limits the rate of calls, so attempts are spread at random.

    arn: ARN of the task, which also names the region.
    tags: Keys and values.
    pause_seconds: Longest wait before the second attempt; it doubles with each attempt.
    Raises TaskStartError if ECS refuses the call, or does not answer after several attempts.
    """
    region, partition = arn.split(":")[3], arn.split(":")[1]
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    url = (
        environment.get("AWS_ENDPOINT_URL_ECS")
        or environment.get("AWS_ENDPOINT_URL")
        or f"https://ecs.{region}.{suffix}"
    ).rstrip("/") + "/"
    body = json.dumps(
        {"resourceArn": arn, "tags": [{"key": key, "value": value} for key, value in tags.items()]}
    ).encode()
    reason = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(random.uniform(0, pause_seconds * 2**attempt))  # noqa: S311 - a pause, not a key
        try:
            headers = signed_call(url, body, read_credentials(environment), region, datetime.now(UTC))
            request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - https of ECS
            with _OPENER.open(request, timeout=_TIMEOUT_SECONDS):
                return
        except urllib.error.HTTPError as error:
            reason = f"{error.code} {error.read().decode(errors='replace')[:300]}"
            if error.code < _SERVER_ERROR and "Throttling" not in reason:
                break
        except (OSError, ValueError, KeyError) as error:
            reason = repr(error)
    raise TaskStartError(f"the task has no tags {', '.join(tags)}: {reason}")


def signed_call(
    url: str, body: bytes, credentials: Credentials, region: str, now: datetime
) -> dict[str, str]:
    """Return the headers of the call.

    url: Address of ECS, which ends with a slash.
    now: Time of the signature, in UTC.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {
        "content-type": _TYPE,
        "host": urlsplit(url).netloc,
        "x-amz-date": stamp,
        "x-amz-target": _TARGET,
    }
    if credentials.token:
        signed["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"POST\n/\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    scope = f"{stamp[:8]}/{region}/ecs/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret}".encode()
    for part in (stamp[:8], region, "ecs", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    holder = f"Credential={credentials.key_id}/{scope}"
    authorization = f"AWS4-HMAC-SHA256 {holder}, SignedHeaders={names}, Signature={signature}"
    return {
        **{name: value for name, value in signed.items() if name != "host"},
        "Authorization": authorization,
    }
