"""A line of Envoy's access log, from which the policy settles a request and makes its usage record.

Envoy writes JSON (``json_format``, which escapes all values), one line per request, when the request has
ended however it ended. Numbers stay numbers; a value that Envoy does not have is left out
(``omit_empty_values``) or ``-``
(https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/observability/access_log/usage).

The decision is read in the metadata that ``ext_authz`` keeps of the policy's answer: nothing that a caller
sends gets there, and it is there still when Envoy has removed the headers for the model.
"""

from __future__ import annotations

from typing import Final

from inference_contracts import door_headers

#: Namespace of the dynamic metadata that Envoy reads in a request and its answer, and the keys of the tokens.
USAGE_NAMESPACE: Final = "door"
INPUT_TOKENS: Final = "in"
OUTPUT_TOKENS: Final = "out"
#: Tokens of the prompt that the engine had in its cache.
CACHED_TOKENS: Final = "cached"
#: Time that the door adds before the model has the request, in microseconds.
ADDED: Final = "addedUs"
#: Namespace of the policy's answer in the dynamic metadata: the name of the filter that asks it.
DECISION_NAMESPACE: Final = "envoy.filters.http.ext_authz"


def _decided(header: str) -> str:
    return f"%DYNAMIC_METADATA({DECISION_NAMESPACE}:{header})%"


#: Field of a line, and the command of Envoy that fills it. Lines of requests that were not admitted have no
#: `reservation`, and are skipped.
FIELDS: Final = {
    "id": "%REQ(x-request-id)%",
    "reservation": _decided(door_headers.RESERVATION),
    "reserved": _decided(door_headers.RESERVED),
    "team": _decided(door_headers.TEAM),
    "project": _decided(door_headers.PROJECT),
    "key": _decided(door_headers.KEY),
    "caller": _decided(door_headers.CALLER),
    "user": _decided(door_headers.USER),
    "model": _decided(door_headers.PUBLIC),
    "target": _decided(door_headers.TARGET),
    "stream": f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:stream)%",
    "choices": f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:choices)%",
    "method": "%REQ(:METHOD)%",
    "path": "%PATH(NQ:ORIG_OR_PATH):256%",
    "status": "%RESPONSE_CODE%",
    "flags": "%RESPONSE_FLAGS%",
    "details": "%RESPONSE_CODE_DETAILS%",
    "upstream": "%UPSTREAM_HOST%",
    "retryAfter": "%RESP(retry-after):16%",
    "address": "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    "callersId": "%REQ(x-client-request-id):128%",
    INPUT_TOKENS: f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:{INPUT_TOKENS})%",
    OUTPUT_TOKENS: f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:{OUTPUT_TOKENS})%",
    CACHED_TOKENS: f"%DYNAMIC_METADATA({USAGE_NAMESPACE}:{CACHED_TOKENS})%",
    "sent": "%BYTES_SENT%",
    "start": "%START_TIME(%Y-%m-%dT%H:%M:%S.%3fZ)%",
    "ms": "%DURATION%",
    # From the last byte of the request to the first byte to the model: what the door adds.
    ADDED: "%COMMON_DURATION(DS_RX_END:US_TX_BEG:us)%",
    "firstByteMs": "%RESPONSE_DURATION%",
}
