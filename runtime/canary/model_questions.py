"""Asks every model one short question and reports whether it answered, and after which time.

Lambda runs it (`handle`). It needs the standard library only, and behind a front door boto3, which Lambda's
runtime has. The report is one line per model in CloudWatch's embedded metric format, from which CloudWatch
Logs makes metrics
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
`contracts/inference_contracts/canary_names.py` names them and the variables of the environment.

Behind a front door, it asks there, with a key. Without one, or with one that the door refuses, no model was
asked: then it reports no metric and says why, and the alarms on missing reports are raised if that lasts.
"""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Mapping

from inference_contracts import canary_names, platform_keys
from inference_contracts.platform_key_reader import KeysNotReadyError, PlatformKeys

_QUESTION = "Say yes."
#: Path of the API, and the fields of a small request, by what a model does.
_REQUESTS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "generate": (
        "chat/completions",
        {"max_tokens": 1, "messages": [{"role": "user", "content": _QUESTION}]},
    ),
    "embed": ("embeddings", {"input": _QUESTION}),
    "rerank": ("rerank", {"query": _QUESTION, "documents": ["Yes."]}),
    "images": ("images/generations", {"prompt": "a dot", "size": "256x256", "num_inference_steps": 1}),
}
#: Fields of an answer that hold its results, where it is not ``data``.
_HOLDERS: Mapping[str, str] = {"generate": "choices", "rerank": "results"}
_UNAUTHORIZED = 401
#: Part of a refusal that is read for its code.
_REFUSAL_BYTES = 4096


class KeyRefusedError(Exception):
    """The front door refuses the canary's key."""


def handle(_event: object, _context: object) -> None:
    """Ask every model in turn. A model that fails does not keep the others from being asked."""
    platform = os.environ[canary_names.PLATFORM_VARIABLE]
    secret = os.environ.get(platform_keys.SECRET_VARIABLE)
    try:
        key = read_key(secret) if secret else None
        for model in json.loads(os.environ[canary_names.MODELS_VARIABLE]):
            started = time.monotonic()
            error = ask(model.get("asked", model["name"]), model["url"], model["task"], key)
            milliseconds = (time.monotonic() - started) * 1000
            print(json.dumps(report(platform, model["name"], milliseconds, error)))
    except (KeysNotReadyError, KeyRefusedError) as error:
        print(json.dumps({"event": "no model was asked", "platform": platform, "why": str(error)}))


def read_key(secret: str) -> str:
    """Return the canary's key as its secret has it now.

    secret: ARN of the secret.
    Raises KeysNotReadyError if it cannot be read, or has no key yet.
    """
    import boto3  # noqa: PLC0415 -- without a front door, nothing of it is needed

    return PlatformKeys(boto3.client("secretsmanager"), secret).key(platform_keys.PLATFORM_TEAM)


def ask(model: str, url: str, task: str, key: str | None = None) -> str:
    """Ask a model and return what is wrong with its answer; empty if nothing is.

    model: Its name in requests.
    url: Address of its API, to ``/v1``.
    task: ``generate``, ``embed`` or ``images``.
    key: Key for the front door. None without one.
    Raises KeyRefusedError if the front door refuses the key.
    """
    path, fields = _REQUESTS[task]
    body = json.dumps({"model": model, **fields}).encode()
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    request = urllib.request.Request(f"{url}/{path}", body, headers)  # noqa: S310 (the platform's own address)
    try:
        with urllib.request.urlopen(request, timeout=canary_names.ANSWER_SECONDS) as response:  # noqa: S310
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        refusal = f"status {error.code}{_code(error)}"
        if key and error.code == _UNAUTHORIZED:
            raise KeyRefusedError(f"the front door refuses the canary's key: {refusal}") from error
        return refusal
    except (OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    held = answer.get(_HOLDERS.get(task, "data")) if isinstance(answer, dict) else None
    return "" if held else "the answer holds nothing"


def _code(error: urllib.error.HTTPError) -> str:
    """Return the code of an error in OpenAI's form, after a space; empty if the answer has none."""
    try:
        found = json.loads(error.read(_REFUSAL_BYTES))["error"]["code"]
    except (OSError, ValueError, TypeError, KeyError):
        return ""
    return f" {found}" if isinstance(found, str) else ""


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
