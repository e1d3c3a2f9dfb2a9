"""Errors that Envoy answers itself, in the form of OpenAI's API: status, code, and what to do.

https://platform.openai.com/docs/guides/error-codes has the codes that OpenAI's clients know. Replies of
Envoy: https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/http/http_conn_man/local_reply
"""

from __future__ import annotations

import json
from typing import Any, Final

from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.places import BATCH_PATHS
from inference_contracts import door_log
from inference_contracts.records import dataclass

JSON: Final = "application/json"
#: Set in the metadata of a request that read_body.lua has refused.
REFUSED: Final = "refused"
#: Status of `ext_authz` if it gets no decision. No answer of the policy has it.
NO_DECISION: Final = 500
NOT_CHECKED: Final = "the front door cannot check the request; send it again"
_FIRST_SERVER_ERROR: Final = 500
#: The path has the stage of the batch API in front once a server was chosen, and not before.
_OF_BATCH: Final[Document] = {
    "header_filter": {
        "header": {
            "name": ":path",
            "string_match": {"safe_regex": {"regex": rf"(/[^/]+)?({'|'.join(BATCH_PATHS)})([/?].*)?"}},
        }
    }
}
#: Flag of requests that `ext_authz` or `jwt_authn` has refused.
_UNAUTHORIZED: Final = "UAEX"
#: Namespace and key of what `jwt_authn` writes if a token is wrong.
JWT_NAMESPACE: Final = "envoy.filters.http.jwt_authn"
JWT_FAILURE: Final = "failure"


@dataclass(frozen=True, slots=True)
class _Error:
    status: int
    code: str
    message: str
    flags: tuple[str, ...] = ()
    retry_after: int | None = None
    of_batch: bool = False
    """Whether it is for the paths of the batch API only."""


#: Nothing took the request, or a server took it and has ended.
_NOT_REACHED: Final = ("UH", "UF", "NC", "UO", "URX", "DF")
_ENDED: Final = ("UC", "UR")
_LOOK: Final = "look whether the request was done, else send it again"
#: In the order in which they are looked for.
_ERRORS: Final = (
    _Error(
        503,
        "batch_unavailable",
        "the batch API cannot be reached, or is not deployed yet; send the request again",
        flags=_NOT_REACHED,
        retry_after=2,
        of_batch=True,
    ),
    _Error(
        503,
        "batch_unavailable",
        f"the batch API has ended while it had the request; {_LOOK}",
        flags=_ENDED,
        of_batch=True,
    ),
    _Error(
        504,
        "batch_timeout",
        f"the batch API has not answered in time; {_LOOK}",
        of_batch=True,
    ),
    _Error(
        502,
        "bad_answer",
        f"the answer of the batch API was not valid HTTP; {_LOOK}",
        of_batch=True,
    ),
    _Error(400, "bad_request", "the request is not valid HTTP; send it as HTTP/1.1"),
    _Error(404, "unknown_url", "there is nothing at this path", flags=("NR",)),
    _Error(
        408,
        "request_timeout",
        "the request did not arrive in time; send it again over a faster connection",
    ),
    _Error(413, "request_too_large", "the body is larger than the maximum; send a shorter prompt"),
    _Error(426, "upgrade_required", "HTTP/1.0 is not accepted; use HTTP/1.1"),
    _Error(431, "request_headers_too_large", "the headers are larger than 32 KiB, or more than 100"),
    _Error(
        503,
        "overloaded",
        "the front door has no room for the request; send it again",
        flags=("OM", "DO"),
        retry_after=1,
    ),
    _Error(
        503,
        "model_unavailable",
        "no server of the model can be reached; send the request again, or ask another model",
        flags=_NOT_REACHED,
        retry_after=2,
    ),
    # Without a time to come again: batch tells by it that a server had the request, and may have died of it.
    _Error(
        503,
        "model_unavailable",
        "the server of the model has ended while it had the request; send the request again",
        flags=_ENDED,
    ),
    _Error(
        504,
        "model_timeout",
        "the model has sent nothing for too long; send the request again with a shorter prompt or answer",
    ),
    _Error(502, "bad_answer", "the answer of the model was not valid HTTP; send the request again"),
    _Error(501, "unsupported_coding", "transfer-encoding must be chunked, or missing"),
    _Error(
        500, "answer_too_large", "the front door could not pass on the answer; ask for fewer results at once"
    ),
    _Error(503, "unavailable", "the request cannot be answered now; send it again", retry_after=1),
)


def envelope(status: int, code: str, message: str, param: str | None = None) -> Document:
    """Return the body of an error.

    status: Status of the answer, which decides the type of the error.
    """
    kind = "invalid_request_error" if status < _FIRST_SERVER_ERROR else "server_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def direct(status: int, code: str, message: str) -> Document:
    """Return the part of a route that answers with an error."""
    body = json.dumps(envelope(status, code, message))
    return {
        "direct_response": {"status": status, "body": {"inline_string": body}},
        "response_headers_to_add": [_header("content-type", JSON)],
    }


def local_replies() -> Document:
    """Return how Envoy's own answers look. Those with a body in the right form stay as they are."""
    own = {"text_format_source": {"inline_string": "%LOCAL_REPLY_BODY%"}, "content_type": JSON}
    token = envelope(401, "invalid_api_key", "the token is not valid: %LOCAL_REPLY_BODY%; get a new one")
    no_decision = _Error(503, "unavailable", NOT_CHECKED, retry_after=1)
    return {
        "mappers": [
            {
                "filter": _has_metadata(JWT_NAMESPACE, JWT_FAILURE),
                "status_code": 401,
                "body_format_override": {"json_format": token, "content_type": JSON},
            },
            {
                "filter": {"and_filter": {"filters": [_has_flag(_UNAUTHORIZED), _has_status(NO_DECISION)]}},
                "status_code": no_decision.status,
                **_written(no_decision),
            },
            {"filter": _has_flag(_UNAUTHORIZED), "body_format_override": own},
            {"filter": _has_metadata(door_log.USAGE_NAMESPACE, REFUSED), "body_format_override": own},
            *({"filter": _where(error), **_written(error)} for error in _ERRORS),
        ]
    }


def _where(error: _Error) -> Document:
    filters = [_has_status(error.status)]
    filters += [_has_flag(*error.flags)] if error.flags else []
    filters += [_OF_BATCH] if error.of_batch else []
    return {"and_filter": {"filters": filters}} if filters[1:] else filters[0]


def _written(error: _Error) -> Document:
    body = envelope(error.status, error.code, error.message)
    found: Document = {"body_format_override": {"json_format": body, "content_type": JSON}}
    if error.retry_after:
        found["headers_to_add"] = [_header("retry-after", str(error.retry_after))]
    return found


def _header(name: str, value: str) -> Document:
    return {"header": {"key": name, "value": value}, "append_action": "OVERWRITE_IF_EXISTS_OR_ADD"}


def _has_status(status: int) -> Document:
    value = {"default_value": status, "runtime_key": f"door.{status}"}
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}


def _has_flag(*flags: str) -> Document:
    return {"response_flag_filter": {"flags": list(flags)}}


def _has_metadata(namespace: str, key: str) -> Document:
    matcher: dict[str, Any] = {
        "filter": namespace,
        "path": [{"key": key}],
        "value": {"present_match": True},
    }
    return {"metadata_filter": {"matcher": matcher, "match_if_key_not_found": False}}
