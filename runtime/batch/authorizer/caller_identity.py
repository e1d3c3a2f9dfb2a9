"""Asking STS who signed a request."""

from __future__ import annotations

import logging
from typing import Final, Protocol
from xml.etree import ElementTree

import urllib3

from batch.authorizer.token import AUDIENCE, SignedQuestion, TokenError, sts_host

_TIMEOUT: Final = urllib3.Timeout(connect=2, read=4)
# Redirects are not followed: an answer is STS's own, or none.
_RETRIES: Final = urllib3.Retry(total=2, redirect=0, status=0, backoff_factor=0.2)
_OK: Final = 200
# It warns of every attempt, with the address.
logging.getLogger("urllib3.connectionpool").setLevel(logging.ERROR)
_REFUSED: Final = range(400, 500)


class StsUnavailableError(Exception):
    """STS gave no answer that says yes or no."""


class Sender(Protocol):
    """What `urllib3.PoolManager` does."""

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
    """STS of one region, asked in the name of one platform.

    Parameters
    ----------
    sender
        Sends requests.
    region
        The platform's region.
    platform
        The platform's name.
    endpoint
        Where STS is, without a slash at its end.
    """

    def __init__(self, sender: Sender, *, region: str, platform: str, endpoint: str) -> None:
        self._sender = sender
        self._headers = {"Host": sts_host(region), AUDIENCE: platform}
        self._endpoint = endpoint

    def arn(self, question: SignedQuestion) -> str:
        """Return the ARN of who signed a request.

        Parameters
        ----------
        question
            The request.

        Raises
        ------
        TokenError
            If STS refuses it: the signature is wrong, for another platform, or nobody's any more.
        StsUnavailableError
            If STS does not answer.
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
            # Without its cause, which names the address and with it the token: this is logged.
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
        raise StsUnavailableError("the answer of STS names nobody")
    return arn
