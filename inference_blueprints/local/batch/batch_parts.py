"""Says what of batch on this machine is real and what is not."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.targets.local.platform_parts import PlatformPart


def describe(workers: Mapping[str, int]) -> tuple[PlatformPart, ...]:
    """Return the lines of the table of parts; the engines that answer have lines of their own.

    Parameters
    ----------
    workers
        How many processes of workers each model has; none where no cluster records its charts.
    """
    return (
        PlatformPart(
            "Batch API",
            "emulated",
            "API Gateway and Lambda by ministack, with the functions of the templates; tokens are checked",
        ),
        PlatformPart(
            "Batch jobs",
            "emulated",
            "Step Functions, SQS, DynamoDB, S3 and EventBridge by ministack, on the templates' state machine",
        ),
        _workers(workers),
        PlatformPart(
            "Batch worker scaling",
            "stubbed",
            "neither KEDA nor Application Auto Scaling runs, nor a task of ECS: as many workers as stay when "
            "there is nothing to do, and one at least",
        ),
        PlatformPart(
            "Batch worker image", "stubbed", "CodeBuild builds none; workers run in this project's own Python"
        ),
    )


def _workers(workers: Mapping[str, int]) -> PlatformPart:
    if not workers:
        return PlatformPart("Batch workers", "stubbed", "not started beside a control plane: no job is run")
    listed = ", ".join(f"{count} of {model}" for model, count in workers.items())
    return PlatformPart(
        "Batch workers",
        "real",
        f"{listed}: processes with the environment of the chart or the task, but for addresses, credentials "
        "and shorter times",
    )
