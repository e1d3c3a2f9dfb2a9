"""Load generators: their interface, and NVIDIA's aiperf."""

from __future__ import annotations

import base64
import gzip
import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from inference_blueprints import tools
from inference_blueprints.measure.completions.completion_client import RequestOutcome, TokenUsage
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_catalog import Model
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_runtime import runtime_directory

# Input and output of aiperf, NVIDIA's load generator.
#
# aiperf can send complete request bodies from a file at given times (``mooncake_trace`` with ``payload``), so
# it can replay a user's trace with exact answer lengths. It records the times of every request. guidellm 0.8
# cannot do this: it generates its own requests at its own rates.
#
# ``runtime/benchmark/ask.py`` runs aiperf, both on this machine and in a cluster.

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


#: The first run installs aiperf, 0.8 GB.
_INSTALL_SECONDS = 900
_ERROR_LINES = 3


@dataclass(frozen=True, slots=True)
class Access:
    """API key and certificates for an endpoint."""

    api_key: str | None = field(default=None, repr=False)
    """Sent as a bearer token, if the endpoint needs one. Left out of the representation."""
    authority: Path | None = None
    """File with trusted certificates in PEM format. None for those of this machine."""

    def session(self) -> aiohttp.ClientSession:
        """Open an HTTP session with the key and the certificates. The caller closes it."""
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        trusted = ssl.create_default_context(cafile=self.authority)
        return aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=trusted))


def access(key_variable: str | None, authority: Path | None, environment: Mapping[str, str]) -> Access:
    """Return the access that the user gives for an endpoint.

    key_variable: Name of the environment variable with the API key.
    authority: File with certificates in PEM form.
    Raises UserError if the variable is unset or empty, or the file has no certificates.
    """
    key = environment.get(key_variable) if key_variable else None
    if key_variable and not key:
        raise UserError(f"--api-key-env: the environment variable {key_variable} is not set or empty")
    if authority:
        try:
            ssl.create_default_context(cafile=authority)
        except OSError as error:
            raise UserError(f"--ca-file: {authority}: no certificates in PEM format: {error}") from error
    return Access(key, authority)


class LoadGenerator(Protocol):
    """Sends a load test to an endpoint."""

    def open_address(self, base_url: str) -> AbstractContextManager[str]:
        """Open an address to which this machine sends the first requests, such as the list of models."""

    def ask(self, load_test: LoadTest) -> str:
        """Send the requests, wait for all answers and return the output of the program."""


@dataclass(frozen=True, slots=True)
class LocalLoadGenerator:
    """Sends requests from this machine. uv creates a separate environment for aiperf."""

    access: Access
    """API key and certificates for the endpoint."""
    shape: Model
    """Any model of the catalogue; aiperf needs its tokenizer."""

    def open_address(self, base_url: str) -> AbstractContextManager[str]:
        """Return the endpoint itself."""
        return nullcontext(base_url)

    def ask(self, load_test: LoadTest) -> str:
        """Send the requests and return the output of the program.

        Raises UserError if aiperf cannot be installed, times out or fails.
        """
        uv = tools.uv()
        if uv is None:
            raise UserError(
                "aiperf needs uv, which creates an environment for it; install uv with: pip install uv"
            )
        package = f"aiperf=={VERSION}"
        command = [str(uv), "tool", "run", "--quiet", "--python", sys.executable, "--from", package]
        _run([*command, "aiperf", "--version"], os.environ, _INSTALL_SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            questions = Path(folder) / "questions.json.gz"
            questions.write_bytes(
                load_test.packed(str(write_model_directory(self.shape, Path(folder) / "tokenizer")))
            )
            environment = {**os.environ, "QUESTIONS": str(questions), "FOLDER": folder}
            if self.access.api_key:
                environment["API_KEY"] = self.access.api_key
            if self.access.authority:
                environment["SSL_CERT_FILE"] = str(self.access.authority.resolve())
            return _run([*command, "python", str(program())], environment, load_test.seconds)


def _run(command: list[str], environment: Mapping[str, str], seconds: float) -> str:
    """Run a command to its end and return its output."""
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(
            f"aiperf did not end within {seconds:.0f} s; send fewer requests with --seconds or --requests"
        ) from error
    if result.returncode:
        lines = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        raise UserError(f"aiperf {VERSION}: {' / '.join(lines[-_ERROR_LINES:]) or 'failed without output'}")
    return result.stdout
