"""The host name of the batch API, whose stack comes after the front door and writes it to a parameter."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

#: All readers of an account and region have 40 reads a second together (AWS Systems Manager endpoints and
#: quotas, "Parameter Store"), so a replica does not ask as often as for its configuration.
_ASK_SECONDS: Final = 30.0
_MISSING: Final = "ParameterNotFound"
#: Callers' keys and files go there, so it must be an API behind an endpoint of a VPC (Amazon API Gateway
#: Developer Guide, "Invoke a private API").
_HOST: Final = re.compile(r"[a-z0-9]+-vpce-[0-9a-f]+\.execute-api\.[a-z0-9-]+\.amazonaws\.com(\.cn)?")


class BatchHost:
    """The host name, which is asked for again and again.

    ssm: Client of AWS Systems Manager.
    parameter: Name of the parameter.
    now: Clock that never goes back, in seconds.
    """

    def __init__(self, ssm: Any, parameter: str, now: Callable[[], float] = time.monotonic) -> None:
        self._ssm, self._parameter, self._now = ssm, parameter, now
        self._host, self._next = "", 0.0

    def current(self) -> str:
        """Return the name; nothing if there is no batch API.

        If the parameter cannot be read or used, the last name stays, and the log says why.
        """
        if self._now() < self._next:
            return self._host
        self._next = self._now() + _ASK_SECONDS
        try:
            found = self._ssm.get_parameter(Name=self._parameter)["Parameter"]["Value"]
        except ClientError as error:
            if error.response["Error"]["Code"] == _MISSING:
                self._host = ""
            else:
                self._report(str(error))
        except BotoCoreError as error:
            self._report(str(error))
        else:
            if _HOST.fullmatch(found):
                self._host = found
            else:
                self._report(
                    f"got {found!r}, must be a host name such as "
                    "a1b2c3d4e5-vpce-0123456789abcdef0.execute-api.us-west-2.amazonaws.com; delete the "
                    "parameter, and deploy the stack Batch again, which writes it"
                )
        return self._host

    def _report(self, reason: str) -> None:
        event = {"event": "batch API not known", "parameter": self._parameter, "reason": reason}
        print(json.dumps(event), file=sys.stderr, flush=True)
