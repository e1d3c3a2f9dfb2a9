"""What a redrive needs of the platform: the model's endpoint, the signal store, and the history."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import urllib3
from botocore.exceptions import BotoCoreError, ClientError
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from inference_contracts.dead_letters import StreamedAnswer, redriven_name
from inference_contracts.platform_key_reader import KeysNotReadyError, PlatformKeys
from inference_contracts.request_headers import SESSION_HEADER
from inference_contracts.streaming_job import StreamingJobConfiguration
from signals.reading import SignalReader
from signals.record import SignalRecord
from signals.store import SignalWriter

_OK: Final = 200
_UNAUTHORIZED: Final = 401
_SHOWN_BYTES: Final = 200


class RedriveError(Exception):
    """A dead letter that cannot be redriven now. The message says why."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """An answer."""

    text: str
    """What the model wrote."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    answer_tokens: int = 0
    """`prompt_tokens`, `cached_tokens`, `answer_tokens`: Tokens as the endpoint counts them; 0 if it does
    not."""


class LetterModel:
    """The model's endpoint.

    connections: Connections that are kept.
    keys: Keys for the front door; None without one.
    """

    def __init__(
        self, job: StreamingJobConfiguration, *, connections: int, keys: PlatformKeys | None = None
    ) -> None:
        self._door, self._keys = job.endpoint.door, keys
        seconds = job.endpoint.deadline_millis / 1000
        self._url = f"{job.endpoint.url.rstrip('/')}/v1/chat/completions"
        self._structured = job.request.response_format is not None
        self._pool = urllib3.PoolManager(
            maxsize=connections, timeout=urllib3.Timeout(connect=2.0, read=seconds), retries=False
        )

    def __call__(self, request: Mapping[str, Any], session: str) -> ModelAnswer:
        """Return the answer.

        Raises RedriveError if the endpoint does not answer in time, or the answer is not usable.
        """
        answer = self._asked(request, session)
        if answer.status != _OK:
            words = answer.data[:_SHOWN_BYTES].decode(errors="replace")
            raise RedriveError(f"the endpoint answers {answer.status}: {words}")
        try:
            document = json.loads(answer.data)
            text = document["choices"][0]["message"]["content"]
            if self._structured:
                json.loads(text)
        except (ValueError, LookupError, TypeError) as error:
            raise RedriveError(f"the answer is not usable: {error}") from error
        if not isinstance(text, str) or not text:
            raise RedriveError("the answer is empty")
        usage = document.get("usage") or {}
        details = usage.get("prompt_tokens_details") or {}
        return ModelAnswer(
            text=text,
            prompt_tokens=usage.get("prompt_tokens") or 0,
            cached_tokens=details.get("cached_tokens") or 0,
            answer_tokens=usage.get("completion_tokens") or 0,
        )

    def _asked(self, request: Mapping[str, Any], session: str) -> BaseHTTPResponse:
        body, headers = dict(request), {SESSION_HEADER: session}
        if self._door is None or self._keys is None:
            return self._send(body, headers)
        # A letter has the model's own name: the door may have come after it.
        body["model"] = self._door.model
        try:
            key = self._keys.key(self._door.team)
            answer = self._send(body, headers | {"Authorization": f"Bearer {key}"})
            if answer.status == _UNAUTHORIZED and self._keys.refused(key):
                key = self._keys.key(self._door.team)
                answer = self._send(body, headers | {"Authorization": f"Bearer {key}"})
        except KeysNotReadyError as error:
            raise RedriveError(str(error)) from error
        return answer

    def _send(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> BaseHTTPResponse:
        try:
            return self._pool.request("POST", self._url, json=body, headers=headers)
        except HTTPError as error:
            raise RedriveError(f"the endpoint does not answer: {error}") from error


class VersionedStore:
    """The signal store of a job."""

    def __init__(self, client: Any, signal: str) -> None:
        self._reader, self._writer, self._signal = SignalReader(client), SignalWriter(client), signal

    def newest_version(self, session: str) -> int | None:
        """Return the version that readers of a session see."""
        record = self._reader.get(self._signal, session)
        return None if record is None else record.version

    def write(self, record: SignalRecord) -> bool:
        """Write a record, and return whether it is the newest."""
        return self._writer.write([record]).written == 1


class AnswerHistory:
    """The history of a job in S3.

    client: Client of S3.
    uri: Address of the history, ``s3a://<bucket>/<prefix>``.
    """

    def __init__(self, client: Any, uri: str) -> None:
        self._client = client
        # The job's scheme is that of a plugin of Flink.
        self._bucket, _, self._prefix = uri.partition("://")[2].partition("/")

    def add(self, answer: StreamedAnswer) -> None:
        """Write a line. A line of the same version that an earlier redrive wrote is replaced.

        Raises RedriveError if S3 does not take it.
        """
        name = redriven_name(answer.session, answer.version)
        try:
            self._client.put_object(
                Bucket=self._bucket, Key=f"{self._prefix}/{name}", Body=answer.to_json().encode()
            )
        except (BotoCoreError, ClientError) as error:
            raise RedriveError(f"the history takes no answer: {error}") from error
