"""Calls the handler of a deployed function again and again, as EventBridge Scheduler does.

A separate program, which is started by its path: ``python -P controller_program.py SETTINGS``. The folder
with the function's deployed code is on its path and this library is not, so that it runs what would run in
Lambda. Besides calling, it does three things:

- `time.time` returns a clock that goes faster. Signatures and timeouts use others.
- CloudWatch's GetMetricData is answered by the run. The emulator has no metrics of batch's workers, which
  write them to files here.
- Ceilings of batch get the real time, because batch runs in real time.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
import urllib.request
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3

_CEILING = "ceiling#"


class ControllerCaller:
    """Calls one handler.

    settings: ``handler``, ``began`` and ``factor`` of the clock, ``everySeconds``, ``answers`` (address of
        the run's answers) and ``results`` (the file that gets a line per call).
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._real_time = time.time
        self._began, self._factor = float(settings["began"]), float(settings["factor"])

    def clock(self) -> float:
        """Return the faster time."""
        return self._began + (self._real_time() - self._began) * self._factor

    def call_until_told_to_end(self) -> None:
        """Call the handler at each full period since the beginning of the run.

        At SIGTERM a running call goes on to its end, as in Lambda: it writes its metrics last.
        """
        told_to_end = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: told_to_end.set())
        time.time = self.clock
        self._answer_for_aws()
        module, _, function = str(self._settings["handler"]).rpartition(".")
        handler = getattr(import_module(module), function)
        every = float(self._settings["everySeconds"])
        with Path(self._settings["results"]).open("a", encoding="utf-8") as results:
            while not told_to_end.wait(every - (self._real_time() - self._began) % every):
                begun, error = self._real_time(), None
                try:
                    handler({}, None)
                except Exception as failure:  # noqa: BLE001 - Lambda records any failure, and calls again
                    error = f"{type(failure).__name__}: {failure}"
                line = {"at": begun, "seconds": self._real_time() - begun, "error": error}
                results.write(json.dumps(line) + "\n")
                results.flush()

    def _answer_for_aws(self) -> None:
        boto3.setup_default_session()
        events = boto3.DEFAULT_SESSION.events
        events.register("before-call.cloudwatch.GetMetricData", self._metric_data)
        events.register("provide-client-params.dynamodb.PutItem", self._in_real_time)

    def _metric_data(self, params: dict[str, Any], **_: Any) -> tuple[Any, dict[str, Any]]:
        """Answer a query of batch's requests in flight. Returning a pair ends the call."""
        del params
        with urllib.request.urlopen(f"{self._settings['answers']}/batch-in-flight", timeout=5) as answer:  # noqa: S310
            points = json.load(answer)
        result = {
            "Id": "m0",
            "Timestamps": [datetime.fromtimestamp(at, UTC) for at, _ in points],
            "Values": [value for _, value in points],
            "StatusCode": "Complete",
        }
        return _Ok(), {"MetricDataResults": [result], "ResponseMetadata": {"HTTPStatusCode": 200}}

    def _in_real_time(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        item = params.get("Item", {})
        if not str(item.get("id", "")).startswith(_CEILING):
            return params
        now = int(self._real_time())
        record = {**item["record"], "at": now}
        return {**params, "Item": {**item, "record": record}}


class _Ok:
    """A response without content."""

    status_code = 200


if __name__ == "__main__":
    ControllerCaller(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).call_until_told_to_end()
