"""Asks every model one short question and reports whether it answered, and after which time.

Lambda runs it (`handle`). It needs the standard library only. The report is one line per model in
CloudWatch's embedded metric format, from which CloudWatch Logs makes metrics
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
`contracts/inference_contracts/canary_names.py` names them and the variables of the environment.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping

from inference_contracts import canary_names

_QUESTION = "Say yes."
#: Path of the API, and the fields of a small request, by what a model does.
_REQUESTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "generate": (
        "chat/completions",
        {"max_tokens": 1, "messages": [{"role": "user", "content": _QUESTION}]},
    ),
    "embed": ("embeddings", {"input": _QUESTION}),
    "images": ("images/generations", {"prompt": "a dot", "size": "256x256", "num_inference_steps": 1}),
}


def handle(_event: object, _context: object) -> None:
    """Ask every model in turn. A model that fails does not keep the others from being asked."""
    platform = os.environ[canary_names.PLATFORM_VARIABLE]
    for model in json.loads(os.environ[canary_names.MODELS_VARIABLE]):
        started = time.monotonic()
        error = ask(model["name"], model["url"], model["task"])
        milliseconds = (time.monotonic() - started) * 1000
        print(json.dumps(report(platform, model["name"], milliseconds, error)))


def ask(model: str, url: str, task: str) -> str:
    """Ask a model and return what is wrong with its answer; empty if nothing is.

    model: Name under which it is served.
    url: Address of its API, to ``/v1``.
    task: ``generate``, ``embed`` or ``images``.
    """
    path, fields = _REQUESTS[task]
    body = json.dumps({"model": model, **fields}).encode()
    request = urllib.request.Request(  # noqa: S310 (the address is the platform's own)
        f"{url}/{path}", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=canary_names.ANSWER_SECONDS) as response:  # noqa: S310
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    held = answer.get("choices" if task == "generate" else "data") if isinstance(answer, dict) else None
    return "" if held else "the answer holds nothing"


def report(platform: str, model: str, milliseconds: float, error: str) -> Mapping[str, object]:
    """Return the report on one model in the embedded metric format.

    platform: `metadata.name`.
    milliseconds: Time until the whole answer was there.
    error: What is wrong; empty if nothing is.
    """
    dimensions = {canary_names.PLATFORM_DIMENSION: platform, canary_names.MODEL_DIMENSION: model}
    directive = {
        "Namespace": canary_names.METRIC_NAMESPACE,
        "Dimensions": [list(dimensions)],
        "Metrics": [
            {"Name": canary_names.ANSWERED, "Unit": "Count"},
            {"Name": canary_names.MILLISECONDS, "Unit": "Milliseconds"},
        ],
    }
    return {
        "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
        **dimensions,
        canary_names.ANSWERED: 0 if error else 1,
        canary_names.MILLISECONDS: round(milliseconds),
        **({"Error": error} if error else {}),
    }
