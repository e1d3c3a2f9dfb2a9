"""Whether Lambda repeats a call whose caller does not wait for the result. Each such function says so.

Without a configuration Lambda repeats a call twice that ended in an error, and for up to six hours one for
which it had no room: AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous
invocation" (https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html). A call may
come twice in either case, because Lambda's queue is eventually consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import aws_cdk as cdk

#: For what the next call does anyway: controllers and the canary. A late call would act on an old time. A
#: minute is the shortest age that Lambda takes
#: (https://docs.aws.amazon.com/lambda/latest/api/API_PutFunctionEventInvokeConfig.html).
NOT_REPEATED: Final[Mapping[str, Any]] = MappingProxyType(
    {"max_event_age": cdk.Duration.minutes(1), "retry_attempts": 0}
)
#: For what nobody asks for again: Lambda's defaults.
REPEATED: Final[Mapping[str, Any]] = MappingProxyType(
    {"max_event_age": cdk.Duration.hours(6), "retry_attempts": 2}
)
