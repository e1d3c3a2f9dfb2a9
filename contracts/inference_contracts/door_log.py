"""A line of Envoy's access log, from which the policy settles a request and makes its usage record.

Envoy writes JSON (``json_format``, which escapes all values), one line per request, when the request has
ended however it ended. Numbers stay numbers; a value that Envoy does not have is left out
(``omit_empty_values``) or ``-``
(https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage).
"""

from __future__ import annotations

from typing import Final

from inference_contracts import door_headers

#: Namespace and keys of the dynamic metadata in which Envoy counts the tokens of an answer.
USAGE_NAMESPACE: Final = "door"
INPUT_TOKENS: Final = "in"
OUTPUT_TOKENS: Final = "out"

#: Field of a line, and the command of Envoy that fills it. Lines of requests that were not admitted have no
#: `reservation`, and are skipped.
FIELDS: Final = {
    "id": "%REQ(x-request-id)%",
    "reservation": f"%REQ({door_headers.RESERVATION})%",
    "reserved": f"%REQ({door_headers.RESERVED})%",
    "team": f"%REQ({door_headers.TEAM})%",
    "project": f"%REQ({door_headers.PROJECT})%",
    "key": f"%REQ({door_headers.KEY})%",
    "caller": f"%REQ({door_headers.CALLER})%",
    "model": f"%REQ({door_headers.PUBLIC})%",
    "target": f"%REQ({door_headers.TARGET})%",
    "stream": f"%REQ({door_headers.STREAM})%",
    "choices": f"%REQ({door_headers.CHOICES})%",
    "path": "%PATH(NQ)%",
    "status": "%RESPONSE_CODE%",
    "flags": "%RESPONSE_FLAGS%",
    "upstream": "%UPSTREAM_HOST%",
    INPUT_TOKENS: f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:{INPUT_TOKENS})%",
    OUTPUT_TOKENS: f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:{OUTPUT_TOKENS})%",
    "sent": "%BYTES_SENT%",
    "start": "%START_TIME%",
    "ms": "%DURATION%",
}
