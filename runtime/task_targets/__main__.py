"""Runs both: a server of targets on loopback, and a round of publishing every 15 seconds."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Protocol

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from inference_contracts import scale_metrics as names
from inference_contracts.packed_files import unpack_files
from task_targets.cluster_tasks import ClusterTasks
from task_targets.load_publisher import embedded_lines, measure
from task_targets.prometheus_query import query_number
from task_targets.scrape_targets import ScrapeTargets, scrape_targets

#: Time between two rounds: that between two readings of KEDA (`serving.types.Scaling.polling_seconds`).
_ROUND_SECONDS: Final = 15.0
#: Answers older than this are not given, so that Prometheus' own metrics show that its list is old.
_OLDEST_SECONDS: Final = 300.0
_CONFIG: Final = Config(
    connect_timeout=3, read_timeout=10, retries={"mode": "standard", "total_max_attempts": 3}
)
_logger = logging.getLogger("task_targets")


class TargetAnswers(Protocol):
    """What the server answers from."""

    def answer(self, path: str, now: float) -> list[dict[str, Any]] | None:
        """Return the targets of a path. None if they are not known."""


class Rounds:
    """Reads the cluster and publishes, again and again.

    environment: Variables of `scale_metrics`.
    tasks: Reads the cluster.
    Raises ValueError if a variable is missing or invalid.
    """

    def __init__(self, environment: Mapping[str, str], tasks: ClusterTasks) -> None:
        needed = (names.CLUSTER, names.PLATFORM, names.ROLES)
        absent = [name for name in needed if not environment.get(name)]
        if absent:
            raise ValueError(f"environment variables are missing: {', '.join(absent)}")
        self._platform, self._tasks = environment[names.PLATFORM], tasks
        self._roles = names.read_roles(environment[names.ROLES])
        self._prometheus = environment.get(names.PROMETHEUS, names.DEFAULT_PROMETHEUS)
        self._lock = threading.Lock()
        self._targets: ScrapeTargets | None = None
        self._read_at = 0.0

    def run_once(self, now: float) -> list[str]:
        """Read the cluster, and return the lines to publish.

        now: Seconds since the epoch.
        """
        try:
            found = scrape_targets(self._platform, self._tasks.live())
            with self._lock:
                self._targets, self._read_at = found, now
            wanted = self._tasks.wanted() if self._roles else {}
        except (ClientError, BotoCoreError):
            # Prometheus keeps its targets, and services their tasks. The alarm on missing metrics tells.
            _logger.exception("the cluster cannot be read")
            return []
        loads = measure(
            self._platform, self._roles, wanted, lambda query: query_number(self._prometheus, query)
        )
        for text in loads.unread:
            _logger.warning("not published: %s", text)
        return list(embedded_lines(self._platform, loads, len(found.unaddressed), now))

    def answer(self, path: str, now: float) -> list[dict[str, Any]] | None:
        """Return the targets of a path. None if the cluster was not read for long, or the job is unknown.

        path: Such as ``/targets/serving``.
        now: Seconds since the epoch.
        """
        with self._lock:
            targets, age = self._targets, now - self._read_at
        if targets is None or age > _OLDEST_SECONDS:
            return None
        by_path = {names.targets_path(job): groups for job, groups in targets.jobs.items()}
        return by_path.get(path)


def server_of(rounds: TargetAnswers, port: int) -> ThreadingHTTPServer:
    """Return a server of targets on loopback.

    rounds: What it answers from.
    port: Its port. 0 for a free one.
    """

    class _TargetRequests(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ready = self.path == names.READY_PATH
            groups = [] if ready else rounds.answer(self.path, time.time())
            body = json.dumps([] if groups is None else groups).encode()
            # Any other status than 200 leaves Prometheus' list as it is.
            self.send_response(200 if groups is not None else 503)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
            """Write no line per request."""

    return ThreadingHTTPServer(("127.0.0.1", port), _TargetRequests)


def main() -> None:
    """Run until the task ends."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    for path, text in unpack_files(os.environ[names.FILES]).items() if os.environ.get(names.FILES) else ():
        Path(path).write_text(text, "utf-8")
    cluster = os.environ.get(names.CLUSTER, "")
    tasks = ClusterTasks(cluster, boto3.client("ecs", config=_CONFIG), boto3.client("ec2", config=_CONFIG))
    rounds = Rounds(os.environ, tasks)
    server = server_of(rounds, names.PORT)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    while not ended.is_set():
        started = time.monotonic()
        for line in rounds.run_once(time.time()):
            sys.stdout.write(line + "\n")
        sys.stdout.flush()
        ended.wait(max(0.0, _ROUND_SECONDS - (time.monotonic() - started)))
    server.shutdown()


if __name__ == "__main__":
    main()
