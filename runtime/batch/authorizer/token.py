"""Tokens: a signed request to STS that says who signed it, and that only STS can check.

A token is ``inference-blueprints-v1.`` and the address of a presigned ``sts:GetCallerIdentity``, as base64url
without padding; the same idea as the tokens of EKS
(https://github.com/kubernetes-sigs/aws-iam-authenticator/blob/master/pkg/token/token.go). What it signs
includes a header with the platform's name, which is not in the address: whoever checks a token adds their
own, so a token that was made for one platform is worth nothing at another.

Nothing of a token reaches STS but values that are what they must be, in a request that is written anew.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

PREFIX: Final = "inference-blueprints-v1."
#: Header that names the platform; part of what is signed.
AUDIENCE: Final = "x-inference-blueprints-audience"
#: STS takes a signed request for so long, whatever it says.
LONGEST_SECONDS: Final = 900
_SKEW_SECONDS: Final = 300
# API Gateway takes 10,240 bytes of headers; a session's own token makes up most of it.
_LONGEST: Final = 8192

_PATTERNS: Final[Mapping[str, str]] = {
    "Action": "GetCallerIdentity",
    "Version": "2011-06-15",
    "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
    "X-Amz-Credential": r"[A-Z0-9]{12,128}/(?P<day>\d{8})/(?P<region>[a-z0-9-]{1,32})/sts/aws4_request",
    "X-Amz-Date": r"\d{8}T\d{6}Z",
    "X-Amz-Expires": r"[1-9]\d{0,2}",
    "X-Amz-SignedHeaders": f"host;{AUDIENCE}",
    "X-Amz-Signature": "[0-9a-f]{64}",
    # Only of a session; those of a user have none.
    "X-Amz-Security-Token": "[A-Za-z0-9+/=_-]{1,4096}",
}
_OPTIONAL: Final = frozenset({"X-Amz-Security-Token"})


class TokenError(Exception):
    """A token that is not taken; the reason is for the log, not for its sender."""


@dataclass(frozen=True, slots=True)
class SignedQuestion:
    """What a token asks of STS.

    Parameters
    ----------
    query
        The request's query, written anew.
    expires_at
        When it ends, in seconds since 1970.
    """

    query: str
    expires_at: float


def sts_host(region: str) -> str:
    """Return the host that a token of a region must be for.

    Parameters
    ----------
    region
        AWS region (https://docs.aws.amazon.com/general/latest/gr/sts.html).
    """
    return f"sts.{region}.amazonaws.com{'.cn' if region.startswith('cn-') else ''}"


def read_token(token: str, *, region: str, now: float, least_seconds: float) -> SignedQuestion:
    """Check everything about a token that can be checked without STS.

    Parameters
    ----------
    token
        The token.
    region
        The platform's region.
    now
        Seconds since 1970.
    least_seconds
        For how long it must still be good: as long as what is said of it is remembered.

    Raises
    ------
    TokenError
        If it is not what it must be.
    """
    values = _parameters(_address(token), sts_host(region))
    matches = {name: _matched(name, value) for name, value in values.items()}
    scope = matches["X-Amz-Credential"]
    if scope["region"] != region:
        raise TokenError(f"it is signed for {scope['region']}, not {region}")
    if not values["X-Amz-Date"].startswith(scope["day"]):
        raise TokenError("its day and its time are not of the same day")
    try:
        begin = datetime.strptime(values["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise TokenError("its time is none") from error
    seconds = int(values["X-Amz-Expires"])
    if seconds > LONGEST_SECONDS:
        raise TokenError(f"it lasts {seconds} s, at most {LONGEST_SECONDS} s are allowed")
    if begin > now + _SKEW_SECONDS:
        raise TokenError("it begins in the future")
    if begin + seconds < now + least_seconds:
        raise TokenError("it has expired, or is about to")
    return SignedQuestion(urlencode(values), begin + seconds)


def _address(token: str) -> str:
    """Return the address in a token."""
    if not token.startswith(PREFIX) or len(token) > _LONGEST:
        raise TokenError("it is no token of this kind")
    content = token.removeprefix(PREFIX)
    try:
        decoded = base64.b64decode(content + "=" * (-len(content) % 4), altchars=b"-_", validate=True).decode(
            "ascii"
        )
    except (binascii.Error, ValueError) as error:
        raise TokenError("it is not base64url") from error
    if re.search(r"[^\x21-\x7e]", decoded):
        raise TokenError("its address has characters that no address has")
    return decoded


def _parameters(address: str, host: str) -> dict[str, str]:
    """Return the parameters of an address of STS, each of which is there once."""
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(
            parts.query, keep_blank_values=True, strict_parsing=True, max_num_fields=len(_PATTERNS)
        )
    except ValueError as error:
        raise TokenError("its address cannot be read") from error
    if (parts.scheme, parts.netloc, parts.path, parts.fragment) != ("https", host, "/", ""):
        raise TokenError(f"its address is not one of https://{host}/")
    counts = Counter(name for name, _ in pairs)
    # As they are written: whoever reads `action` for `Action` checks one of two and sends the other.
    if set(counts) - _OPTIONAL != set(_PATTERNS) - _OPTIONAL or set(counts.values()) != {1}:
        raise TokenError("its parameters are not those of a presigned sts:GetCallerIdentity, each once")
    return dict(pairs)


def _matched(name: str, value: str) -> re.Match[str]:
    """Return how a parameter's value matches what it must be."""
    match = re.fullmatch(_PATTERNS[name], value, re.ASCII)
    if match is None:
        raise TokenError(f"its {name} is not what it must be")
    return match
