"""Describes which parts of batch are real on this machine."""

from __future__ import annotations

from collections.abc import Mapping

from inference_local.serving.platform_parts import PlatformPart


def describe(workers: Mapping[str, int]) -> tuple[PlatformPart, ...]:
    """Return the batch rows of the table of parts.

    Parameters
    ----------
    workers
        Number of worker processes per model. Empty with a control plane, where no charts are recorded.
    """
    return (
        PlatformPart(
            "Batch API",
            "emulated",
            "ministack's API Gateway and Lambda run the functions of the templates; tokens are checked",
        ),
        PlatformPart(
            "Batch jobs",
            "emulated",
            "ministack's Step Functions, SQS, DynamoDB, S3 and EventBridge run the templates' state machine",
        ),
        _workers(workers),
        PlatformPart(
            "Batch worker scaling",
            "stubbed",
            "KEDA, Application Auto Scaling and ECS tasks do not run; the number of workers is fixed at the "
            "minimum, and at least one per model",
        ),
        PlatformPart(
            "Batch worker image", "stubbed", "CodeBuild builds no image; workers run in this project's Python"
        ),
    )


def _workers(workers: Mapping[str, int]) -> PlatformPart:
    if not workers:
        return PlatformPart("Batch workers", "stubbed", "not started with a control plane; no batch job runs")
    listed = ", ".join(f"{count} of {model}" for model, count in workers.items())
    return PlatformPart(
        "Batch workers",
        "real",
        f"{listed}: processes with the environment of the chart or the task, except for addresses, "
        "credentials and shorter timeouts",
    )
