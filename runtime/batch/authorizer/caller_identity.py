"""Asks STS who signed a token."""

from __future__ import annotations

import logging
from typing import Final, Protocol
from xml.etree import ElementTree

import urllib3

from batch.authorizer.token import SignedQuestion, TokenError
from inference_contracts.batch_names import TOKEN_AUDIENCE_HEADER, sts_host

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
