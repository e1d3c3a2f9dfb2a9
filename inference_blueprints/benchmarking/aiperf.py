"""What aiperf, NVIDIA's load generator, is asked, and what it says became of each request.

aiperf and not guidellm: it sends whole request bodies at given times from a file (``mooncake_trace`` with
``payload``), so that a trace of the user's is asked as it was recorded, with exact lengths of answers, and it
writes every request's times. guidellm 0.8 makes its own requests at rates of its own.

``runtime/benchmark/ask.py`` runs it, on this machine and in a cluster alike.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints import resources
from inference_blueprints.completions.outcome import Outcome, Usage
from inference_blueprints.errors import UserError

#: Of the newer 0.13.0 no image is known to be published; flags and records are the same.
VERSION = "0.12.0"
REQUEST_SECONDS = 120
#: What starting its processes and ending them takes.
OVERHEAD_SECONDS = 120
_MS, _NS = 1e3, 1e9
#: How lines with records begin (``PREFIX`` of the program).
_PREFIX = "records "


@dataclass(frozen=True, slots=True)
class Question:
    """A request as it is sent.

    Parameters
    ----------
    arrival_seconds
        When, counted from the start.
    blocks
        The user's message: a number of words and their seed each.
    output_tokens
        Exact length of the answer to ask for.
    """

    arrival_seconds: float
    blocks: tuple[tuple[int, int], ...]
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Errand:
    """Everything that is asked.

    Parameters
    ----------
    base_url
        Endpoint without ``/v1``, as the asker reaches it.
    model
        Name of the model to ask.
    words
        What prompts are made of.
    questions
        In the order of arrival, at least one.
    """

    base_url: str
    model: str
    words: Sequence[str]
    questions: Sequence[Question]

    @property
    def seconds(self) -> float:
        """How long it may take at the most."""
        return self.questions[-1].arrival_seconds + REQUEST_SECONDS + OVERHEAD_SECONDS

    def packed(self, tokenizer: str) -> bytes:
        """Return the document that the program reads.

        Parameters
        ----------
        tokenizer
            Name or folder of any tokenizer: aiperf loads one even when the endpoint counts tokens and texts
            are given.
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
    return resources.runtime_directory() / "benchmark" / "ask.py"


def outcomes(said: str) -> list[Outcome]:
    """Return what became of the requests.

    Parameters
    ----------
    said
        What the program printed; other lines among its own are no matter.

    Returns
    -------
    list of Outcome
        In the order of sending; times are seconds of the asking machine's clock.

    Raises
    ------
    UserError
        If the records are not there whole, or not those that aiperf writes.
    """
    packed = "".join(
        line.removeprefix(_PREFIX).strip() for line in said.splitlines() if line.startswith(_PREFIX)
    )
    try:
        lines = gzip.decompress(base64.b64decode(packed, validate=True)).decode().splitlines()
        found = [_outcome(json.loads(line)) for line in lines]
    except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"these are not the records of aiperf {VERSION}: {error!r}") from error
    if not found:
        raise UserError("aiperf's records are missing")
    return sorted(found, key=lambda outcome: outcome.sent_seconds)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    metadata, metrics = record["metadata"], record["metrics"]
    sent, ended = metadata["request_start_ns"] / _NS, metadata["request_end_ns"] / _NS
    error = record.get("error")
    if error or "time_to_first_token" not in metrics:
        code = (error or {}).get("code")
        reason = f"HTTP {code}" if code else (error or {}).get("type") or "answer without tokens"
        detail = (error or {}).get("message") or ""
        return Outcome(sent, sent, None, None, ended, None, str(reason), str(detail))
    values = {name: metric["value"] for name, metric in metrics.items()}
    usage = None
    if "usage_prompt_tokens" in values:
        usage = Usage(
            round(values["usage_prompt_tokens"]),
            round(values["usage_completion_tokens"]),
            round(values["usage_prompt_cache_read_tokens"])
            if "usage_prompt_cache_read_tokens" in values
            else None,
        )
    first, last = (sent + values[name] / _MS for name in ("time_to_first_token", "request_latency"))
    return Outcome(sent, sent, first, last, ended, usage)
