"""How to use the batch API of a run that keeps running."""

from __future__ import annotations

import shlex
from pathlib import Path

from inference_local.run_state import RunningBatch


def usage_lines(batch: RunningBatch, run_directory: Path, program: str) -> tuple[str, ...]:
    """Return the address, how to get a token, and a command for a POSIX shell that lists jobs.

    batch: The running batch API.
    program: How this shell calls the command `blueprints`.
    """
    token = f"$({program} local token --run-directory {shlex.quote(str(run_directory))})"
    return (
        f"batch: {batch.base_url} for clients of the OpenAI API, as team {batch.team}",
        f'export OPENAI_BASE_URL={shlex.quote(batch.base_url)} OPENAI_API_KEY="{token}"',
        'curl -s "$OPENAI_BASE_URL/batches" -H "Authorization: Bearer $OPENAI_API_KEY"',
    )
