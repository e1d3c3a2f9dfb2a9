"""Input and output of aiperf, NVIDIA's load generator.

aiperf can send complete request bodies from a file at given times (``mooncake_trace`` with ``payload``), so
it can replay a user's trace with exact answer lengths. It records the times of every request. guidellm 0.8
cannot do this: it generates its own requests at its own rates.

``runtime/benchmark/ask.py`` runs aiperf, both on this machine and in a cluster.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints.measure.completions.request_outcome import RequestOutcome, TokenUsage
from inference_contracts.errors import UserError
from inference_runtime import runtime_directory

VERSION = "0.12.0"
VERSION_REASON = "for 0.13.0 no published image is known; flags and records are the same"
REQUEST_SECONDS = 120
#: Time to start and end the processes of aiperf.
OVERHEAD_SECONDS = 120
_MS, _NS = 1e3, 1e9
#: Prefix of output lines that contain records (``PREFIX`` of the program).
_PREFIX = "records "


@dataclass(frozen=True, slots=True)
class Question:
    """One request to send."""

    arrival_seconds: float
    """Time of sending, in seconds since the start."""
    blocks: tuple[tuple[int, int], ...]
    """Blocks of the user's message: number of words and random seed."""
    output_tokens: int
    """Exact length of the answer to ask for."""


@dataclass(frozen=True, slots=True)
class LoadTest:
    """All requests of a benchmark and where they go."""

    base_url: str
    """Endpoint without ``/v1``, as seen from the load generator."""
    model: str
    """Name of the model under the OpenAI API."""
    words: Sequence[str]
    """Vocabulary of the prompts."""
    questions: Sequence[Question]
    """The requests in order of arrival; at least one."""

    @property
    def seconds(self) -> float:
        """Maximum duration of the load test."""
        return self.questions[-1].arrival_seconds + REQUEST_SECONDS + OVERHEAD_SECONDS

    def packed(self, tokenizer: str) -> bytes:
        """Return the document that the program reads.

        tokenizer: Name or folder of any tokenizer: aiperf loads one although the endpoint counts the tokens.
        """
        document = {
            "words": list(self.words),
            "arguments": self._arguments(tokenizer),
            "requests": [self._request(question) for question in self.questions],
        }
        return gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0)

    def _arguments(self, tokenizer: str) -> list[str]:
        options = {
            "--model": self.model,
            "--url": self.base_url,
            "--endpoint-type": "chat",
            "--custom-dataset-type": "mooncake_trace",
            "--tokenizer": tokenizer,
            "--request-timeout-seconds": str(REQUEST_SECONDS),
            "--ui": "none",
        }
        flags = ["--streaming", "--fixed-schedule", "--use-server-token-count"]
        flags += ["--no-server-metrics", "--no-gpu-telemetry"]
        return [*(word for option in options.items() for word in option), *flags]

    def _request(self, question: Question) -> dict[str, Any]:
        body = {
            "model": self.model,
            "max_tokens": question.output_tokens,
            "min_tokens": question.output_tokens,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return {"timestamp": question.arrival_seconds * _MS, "body": body, "blocks": question.blocks}


def program() -> Path:
    """Return the file of the program that runs aiperf."""
    return runtime_directory() / "benchmark" / "ask.py"


def outcomes(said: str) -> list[RequestOutcome]:
    """Return the outcome of each request.

    said: Output of the program. Other lines in it are ignored.
    Returns: In order of sending; times are seconds on the clock of the sending machine.
    Raises UserError if records are missing, incomplete or not in the format of aiperf.
    """
    packed = "".join(
        line.removeprefix(_PREFIX).strip() for line in said.splitlines() if line.startswith(_PREFIX)
    )
    try:
        lines = gzip.decompress(base64.b64decode(packed, validate=True)).decode().splitlines()
        found = [_outcome(json.loads(line)) for line in lines]
    except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"cannot read the records of aiperf {VERSION}: {error!r}") from error
    if not found:
        raise UserError("aiperf's records are missing")
    return sorted(found, key=lambda outcome: outcome.sent_seconds)


def _outcome(record: Mapping[str, Any]) -> RequestOutcome:
    metadata, metrics = record["metadata"], record["metrics"]
    sent, ended = metadata["request_start_ns"] / _NS, metadata["request_end_ns"] / _NS
    error = record.get("error")
    if error or "time_to_first_token" not in metrics:
        code = (error or {}).get("code")
        reason = f"HTTP {code}" if code else (error or {}).get("type") or "answer without tokens"
        detail = (error or {}).get("message") or ""
        return RequestOutcome(sent, sent, None, None, ended, None, str(reason), str(detail))
    values = {name: metric["value"] for name, metric in metrics.items()}
    usage = None
    if "usage_prompt_tokens" in values:
        usage = TokenUsage(
            round(values["usage_prompt_tokens"]),
            round(values["usage_completion_tokens"]),
            round(values["usage_prompt_cache_read_tokens"])
            if "usage_prompt_cache_read_tokens" in values
            else None,
        )
    first, last = (sent + values[name] / _MS for name in ("time_to_first_token", "request_latency"))
    return RequestOutcome(sent, sent, first, last, ended, usage)
