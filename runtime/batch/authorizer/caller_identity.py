"""Asks STS who signed a token."""

from __future__ import annotations

import base64
import binascii
import logging
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit
from xml.etree import ElementTree

import urllib3

from inference_contracts.batch_limits import TOKEN_SECONDS
from inference_contracts.batch_names import TOKEN_AUDIENCE_HEADER, TOKEN_PREFIX, sts_host

# Tokens: signed requests to STS that prove who signed them, and that only STS can check.
#
# A token is ``inference-blueprints-v1.`` plus the address of a presigned ``sts:GetCallerIdentity`` request,
# as base64url without padding. The tokens of EKS use the same idea
# (https://github.com/kubernetes-sigs/aws-iam-authenticator/blob/master/pkg/token/token.go). The signature
# covers a header with the platform's name. The address does not contain that header: the checking platform
# adds its own name. So a token for one platform is useless at another.
#
# Only checked values of a token reach STS, in a request built from them.

_SKEW_SECONDS: Final = 300
# API Gateway accepts 10,240 bytes of headers. The session token of AWS makes up most of a token.
_LONGEST: Final = 8192

_PATTERNS: Final[Mapping[str, str]] = {
    "Action": "GetCallerIdentity",
    "Version": "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": r"[A-Z0-9]{12,128}/(?P<day>\d{8})/(?P<region>[a-z0-9-]{1,32})/sts/aws4_request",
    "X-Amz-Date": r"\d{8}T\d{6}Z",
    "X-Amz-Expires": r"[1-9]\d{0,2}",
    "X-Amz-SignedHeaders": f"host;{TOKEN_AUDIENCE_HEADER}",
    "X-Amz-Signature": "[0-9a-f]{64}",
    # Only sessions have this parameter. Users do not.
    "X-Amz-Security-Token": "[A-Za-z0-9+/=_-]{1,4096}",
}
_OPTIONAL: Final = frozenset({"X-Amz-Security-Token"})


class TokenError(Exception):
    """A refused token. The reason goes to the log, not to the sender."""


@dataclass(frozen=True, slots=True)
class SignedQuestion:
    """The STS request that a token contains."""

    query: str
    """Query of the rebuilt request."""
    expires_at: float
    """Expiry time of the token, in seconds since 1970."""


def read_token(token: str, *, region: str, now: float, min_seconds: float) -> SignedQuestion:
    """Check all properties of a token that do not need STS.

    min_seconds: Shortest remaining validity: the time in which the decision is cached.
    Raises TokenError if the token is invalid.
    """
    values = _parameters(_address(token), sts_host(region))
    matches = {name: _matched(name, value) for name, value in values.items()}
    scope = matches["X-Amz-Credential"]
    if scope["region"] != region:
        raise TokenError(f"it is signed for {scope['region']}, not {region}")
    if not values["X-Amz-Date"].startswith(scope["day"]):
        raise TokenError("its X-Amz-Credential and X-Amz-Date have different days")
    try:
        begin = datetime.strptime(values["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise TokenError("its X-Amz-Date is not a valid time") from error
    seconds = int(values["X-Amz-Expires"])
    if seconds > TOKEN_SECONDS:
        raise TokenError(f"it lasts {seconds} s, at most {TOKEN_SECONDS} s are allowed")
    if begin > now + _SKEW_SECONDS:
        raise TokenError("it begins in the future")
    if begin + seconds < now + min_seconds:
        raise TokenError("it has expired, or is about to")
    return SignedQuestion(urlencode(values), begin + seconds)


def _address(token: str) -> str:
    if not token.startswith(TOKEN_PREFIX) or len(token) > _LONGEST:
        raise TokenError("it is not a token of the batch API")
    content = token.removeprefix(TOKEN_PREFIX)
    try:
        decoded = base64.b64decode(content + "=" * (-len(content) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except (binascii.Error, ValueError) as error:
        raise TokenError("it is not base64url") from error
    if re.search(r"[^\x21-\x7e]", decoded):
        raise TokenError("its URL has characters that a URL cannot have")
    return decoded


def _parameters(address: str, host: str) -> dict[str, str]:
    """Return the parameters of an STS address. Each may occur only once."""
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=True, max_num_fields=len(_PATTERNS)
        )
    except ValueError as error:
        raise TokenError("its URL cannot be parsed") from error
    if (parts.scheme, parts.netloc, parts.path, parts.fragment) != ("https", host, "/", ""):
        raise TokenError(f"its URL is not below https://{host}/")
    counts = Counter(name for name, _ in pairs)
    # Names are case-sensitive. Otherwise `action` could be checked and `Action` sent.
    if set(counts) - _OPTIONAL != set(_PATTERNS) - _OPTIONAL or set(counts.values()) != {1}:
        raise TokenError("its parameters are not those of a presigned sts:GetCallerIdentity, each once")
    return dict(pairs)


def _matched(name: str, value: str) -> re.Match[str]:
    """Return the match of a parameter's value with its pattern."""
    match = re.fullmatch(_PATTERNS[name], value, re.ASCII)
    if match is None:
        raise TokenError(f"its {name} is not valid")
    return match


_TIMEOUT: Final = urllib3.Timeout(connect=2, read=4)
# Redirects are not followed: only a response of STS itself counts.
_RETRIES: Final = urllib3.Retry(total=2, redirect=0, status=0, backoff_factor=0.2)
_OK: Final = 200
# urllib3 logs a warning with the address for every retry.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
_REFUSED: Final = range(400, 500)


class StsUnavailableError(Exception):
    """STS gave no definite answer."""


class Sender(Protocol):
    """The interface of `urllib3.PoolManager`."""

    def request(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        redirect: bool,
        retries: urllib3.Retry,
        timeout: urllib3.Timeout,
    ) -> urllib3.BaseHTTPResponse:
        """Send a request and return its answer."""


class CallerIdentity:
    """Client of STS in one region, for the tokens of one platform.

    audience: The platform, as tokens name it (`token_audience`).
    endpoint: Base address of STS, without a slash at its end.
    """

    def __init__(self, sender: Sender, *, region: str, audience: str, endpoint: str) -> None:
        self._sender = sender
        self._headers = {"Host": sts_host(region), TOKEN_AUDIENCE_HEADER: audience}
        self._endpoint = endpoint

    def arn(self, question: SignedQuestion) -> str:
        """Return the ARN of the principal that signed a request.

        Raises TokenError if STS refuses the request: the signature is wrong, is for another platform, or has
        been revoked. Raises StsUnavailableError if STS does not answer.
        """
        try:
            answer = self._sender.request(
                "GET",
                f"{self._endpoint}/?{question.query}",
                headers=self._headers,
                redirect=False,
                retries=_RETRIES,
                timeout=_TIMEOUT,
            )
        except urllib3.exceptions.HTTPError:
            # `from None`: the cause contains the address, and with it the token. This error is logged.
            raise StsUnavailableError("STS does not answer") from None
        if answer.status in _REFUSED:
            raise TokenError(f"STS refuses it with status {answer.status}")
        if answer.status != _OK:
            raise StsUnavailableError(f"STS answers with status {answer.status}")
        return _arn(answer.data)


def _arn(body: bytes) -> str:
    """Return the ARN of an answer (https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html)."""
    try:
        arn = ElementTree.fromstring(body).findtext(".//{*}GetCallerIdentityResult/{*}Arn")  # noqa: S314 - from STS
    except ElementTree.ParseError as error:
        raise StsUnavailableError("the answer of STS cannot be read") from error
    if not arn:
        raise StsUnavailableError("the answer of STS contains no ARN")
    return arn
