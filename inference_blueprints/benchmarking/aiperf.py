"""Runs aiperf, NVIDIA's load generator, in an environment of its own, and reads what became of each request.

aiperf and not guidellm: it sends whole request bodies at given times from a file (``mooncake_trace`` with
``payload``), so that a trace of the user's is asked as it was recorded, with exact lengths of answers, and it
writes every request's times. guidellm 0.8 makes its own requests at rates of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_blueprints import tools
from inference_blueprints.completions.outcome import Outcome, Usage
from inference_blueprints.errors import UserError

VERSION = "0.13.0"
REQUEST_SECONDS = 120
#: The first run installs it, 0.8 GB; every run starts its processes and ends them.
_INSTALL_SECONDS, _OVERHEAD_SECONDS = 900, 120
_MS, _NS = 1e3, 1e9
_SAID_LINES = 3


@dataclass(frozen=True, slots=True)
class Question:
    """A request as it is sent.

    Parameters
    ----------
    arrival_seconds
        When, counted from the start.
    prompt
        The user's message.
    output_tokens
        Exact length of the answer to ask for.
    """

    arrival_seconds: float
    prompt: str
    output_tokens: int


def ask(
    base_url: str, model: str, questions: Iterable[Question], tokenizer: Path, folder: Path
) -> list[Outcome]:
    """Send requests at their times and return what became of them.

    Parameters
    ----------
    base_url
        Endpoint without ``/v1``.
    model
        Name of the model to ask.
    questions
        In the order of arrival, at least one.
    tokenizer
        Folder of any tokenizer: aiperf loads one even when the endpoint counts tokens and texts are given.
    folder
        Where requests and results are written.

    Returns
    -------
    list of Outcome
        In the order of sending; times are seconds of the machine's clock.

    Raises
    ------
    UserError
        If aiperf cannot be installed, does not end in time or fails.
    """
    program = tools.uv()
    if program is None:
        raise UserError("aiperf runs in an environment of its own, which uv makes: pip install uv")
    source = folder / "requests.jsonl"
    lines = [_line(model, question) for question in questions]
    source.write_text("".join(lines), encoding="utf-8")
    last_seconds = json.loads(lines[-1])["timestamp"] / _MS
    package = f"aiperf=={VERSION}"
    tool = [str(program), "tool", "run", "--quiet", "--python", sys.executable, "--from", package, "aiperf"]
    _run([*tool, "--version"], _INSTALL_SECONDS, folder)
    options = {
        "--model": model,
        "--url": base_url,
        "--endpoint-type": "chat",
        "--input-file": str(source),
        "--custom-dataset-type": "mooncake_trace",
        "--tokenizer": str(tokenizer),
        "--output-artifact-dir": str(folder / "results"),
        "--request-timeout-seconds": str(REQUEST_SECONDS),
        "--ui": "none",
    }
    flags = ["--streaming", "--fixed-schedule", "--use-server-token-count"]
    flags += ["--no-server-metrics", "--no-gpu-telemetry"]
    words = [word for option in options.items() for word in option]
    _run([*tool, "profile", *words, *flags], last_seconds + REQUEST_SECONDS + _OVERHEAD_SECONDS, folder)
    return read_records(folder / "results" / "profile_export.jsonl")


def read_records(path: Path) -> list[Outcome]:
    """Read aiperf's file with a line a request.

    Parameters
    ----------
    path
        ``profile_export.jsonl``.

    Raises
    ------
    UserError
        If it is not there or not what aiperf writes.
    """
    try:
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        outcomes = [_outcome(record) for record in records]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(f"{path}: is not what aiperf {VERSION} writes: {error!r}") from error
    return sorted(outcomes, key=lambda outcome: outcome.sent_seconds)


def _line(model: str, question: Question) -> str:
    """Write a request as a line of aiperf's input."""
    body = {
        "model": model,
        "messages": [{"role": "user", "content": question.prompt}],
        "max_tokens": question.output_tokens,
        "min_tokens": question.output_tokens,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return json.dumps({"timestamp": question.arrival_seconds * _MS, "payload": body}) + "\n"


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


def _run(command: list[str], seconds: float, folder: Path) -> None:
    """Run a command to its end; its temporary and configuration files go to the folder."""
    environment = {**os.environ, "TMPDIR": str(folder), "NO_COLOR": "1", "COLUMNS": "200"}
    try:
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise UserError(f"aiperf did not end within {seconds:.0f} s; ask for less with --seconds") from error
    if result.returncode:
        said = [line.strip() for line in (result.stderr or result.stdout).splitlines() if line.strip()]
        raise UserError(f"aiperf {VERSION} failed: {' / '.join(said[-_SAID_LINES:]) or 'it said nothing'}")
