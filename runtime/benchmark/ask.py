"""Sends requests with aiperf and prints the results: `python ask.py`, where aiperf is installed.

Environment variables: ``QUESTIONS`` is the path of a gzipped JSON document, and ``FOLDER`` is a writable
folder.
The optional ``API_KEY`` is sent as a bearer token and is never on a command line. The document has ``words``,
``arguments`` of ``aiperf profile``, and ``requests``: a time in milliseconds, a body, and a prompt as blocks,
each with a number of words and a seed. The output lines begin with ``records``. They contain aiperf's records
without unused fields, gzipped and in base64, because a container's log keeps only some megabytes.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

PREFIX = "records "
_LINE_CHARACTERS = 4096
_SAID_LINES = 3
_METADATA = ("request_start_ns", "request_end_ns")
_METRICS = (
    "time_to_first_token",
    "request_latency",
    "usage_prompt_tokens",
    "usage_completion_tokens",
    "usage_prompt_cache_read_tokens",
)
# The same as `aiperf`, but the key comes from the environment and is removed from it first.
_LAUNCH = """
import os, sys
key = os.environ.pop("API_KEY", "")
sys.argv[1:] += ["--api-key", key] if key else []
from aiperf.cli import app
app()
"""


def main(environment: Mapping[str, str]) -> int:
    """Send the requests and return the exit code: 0 if aiperf wrote their results."""
    folder = Path(environment["FOLDER"])
    document = json.loads(gzip.decompress(Path(environment["QUESTIONS"]).read_bytes()))
    source, results = folder / "requests.jsonl", folder / "results"
    with source.open("w", encoding="utf-8") as file:
        file.writelines(_lines(document))
    files = ["--input-file", str(source), "--output-artifact-dir", str(results)]
    ended = subprocess.run(
        [sys.executable, "-c", _LAUNCH, "profile", *document["arguments"], *files],
        env={**environment, "HOME": str(folder), "TMPDIR": str(folder), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    records = results / "profile_export.jsonl"
    # aiperf also fails if every request failed, after it has written the results.
    if not records.exists() or not records.stat().st_size:
        said = [line.strip() for line in (ended.stderr or ended.stdout).splitlines() if line.strip()]
        print(f"error: aiperf failed: {' / '.join(said[-_SAID_LINES:]) or 'no output'}", file=sys.stderr)
        return 1
    packed = base64.b64encode(gzip.compress("".join(_reduced(records)).encode())).decode()
    for start in range(0, len(packed), _LINE_CHARACTERS):
        print(f"{PREFIX}{packed[start : start + _LINE_CHARACTERS]}")
    return 0


def prompt(words: Sequence[str], blocks: Sequence[Sequence[int]]) -> str:
    """Return the text of blocks: words chosen by a seed, each with a space before it.

    words: The words to choose from.
    blocks: Blocks, each with a number of words and a seed.
    """
    return "".join(
        f" {word}"
        for count, seed in blocks
        for word in random.Random(seed).choices(words, k=count)  # noqa: S311 - no secret is made
    )


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Write the requests in aiperf's format: complete bodies with their times."""
    for request in document["requests"]:
        messages = [{"role": "user", "content": prompt(document["words"], request["blocks"])}]
        body = {**request["body"], "messages": messages}
        yield json.dumps({"timestamp": request["timestamp"], "payload": body}) + "\n"


def _reduced(path: Path) -> Iterator[str]:
    """Remove unused fields of each record, such as the time of every token."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            kept = {
                "metadata": {name: record["metadata"][name] for name in _METADATA},
                "metrics": {name: record["metrics"][name] for name in _METRICS if name in record["metrics"]},
                "error": record.get("error"),
            }
            yield json.dumps(kept) + "\n"


if __name__ == "__main__":
    sys.exit(main(os.environ))
