"""What the sources of the enrichment job say about its metrics and its dead letters."""

from __future__ import annotations

import re
from collections.abc import Iterator

from inference_runtime import runtime_directory


def _sources() -> Iterator[str]:
    for source in (runtime_directory() / "java" / "enrichment-job" / "src" / "main").rglob("*.java"):
        yield source.read_text("utf-8")


def job_metrics() -> set[str]:
    """Return the names under which the job's operators register metrics."""
    names: set[str] = set()
    for source in _sources():
        for kind, name in re.findall(r'(counter|gauge|quantiles)\("(\w+)"', source):
            names |= {f"{name}P50", f"{name}P99"} if kind == "quantiles" else {name}
    return names


def words_of_the_job() -> set[str]:
    """Return all lower-case strings of the job's code that are one word."""
    return {word for source in _sources() for word in re.findall(r'"([a-z_]+)"', source)}
