"""The deployed code and environment of a controller's function."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inference_contracts import operations_names
from inference_contracts.errors import UserError
from inference_contracts.units import SECONDS_PER_MINUTE
from inference_local.controllers import controller_program
from inference_local.controllers.run_clock import RunClock
from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessGroup

MINUTE_HANDLERS = {"health": "gpu_health.minute.handle", "shift": "capacity_shift.handlers.shift"}
_OPERATIONS = "*-Operations.template.json"
#: The emulated cluster has no certificate authority, and an address without TLS needs none.
_NO_AUTHORITY = "none"


@dataclass(frozen=True, slots=True)
class DeployedFunction:
    """A function that was deployed to the emulator."""

    handler: str
    code: Path
    """Folder with its code, the asset that was published."""
    arn: str
    """Its ARN in the emulator."""
    environment: Mapping[str, str]
    """Its variables, as the emulated Lambda has them."""

    def stop(self, emulator: Emulator) -> None:
        """Disable the emulator's schedule of the function."""
        _disable_schedules(emulator, self.arn)

    def start(
        self,
        processes: ProcessGroup,
        emulator: Emulator,
        *,
        answers: str,
        controller: str,
        clock: RunClock,
        directory: Path,
        every_seconds: float | None = None,
    ) -> Path:
        """Start a program that calls the handler once per minute of a clock. Return the file with its calls.

        The emulator's schedule of the function is disabled: its calls would follow another clock.

        processes: The group that it joins.
        emulator: What its AWS clients call.
        answers: Address of the cluster and of the metrics.
        controller: Name below which that address answers its PromQL.
        directory: Folder for its files.
        every_seconds: Real time between two calls, if it is not a minute of the clock.
        """
        _disable_schedules(emulator, self.arn)
        directory = directory.resolve()
        directory.mkdir(parents=True, exist_ok=True)
        settings, results = directory / f"{controller}.json", directory / f"{controller}-calls.jsonl"
        results.touch()
        content = {
            "handler": self.handler,
            "began": clock.began,
            "factor": clock.factor,
            "everySeconds": every_seconds or SECONDS_PER_MINUTE / clock.factor,
            "answers": answers,
            "results": str(results),
        }
        settings.write_text(json.dumps(content), encoding="utf-8")
        processes.start(
            f"controller {controller}",
            [sys.executable, "-P", controller_program.__file__, settings],
            environment={
                **self.environment,
                **emulator.environment(),
                operations_names.CLUSTER_ENDPOINT: answers,
                operations_names.CLUSTER_AUTHORITY: _NO_AUTHORITY,
                operations_names.METRICS_ENDPOINT: f"{answers}/{controller}",
                "PYTHONPATH": os.pathsep.join([str(self.code), sysconfig.get_path("purelib")]),
                "PATH": os.defpath,
                "HOME": str(directory),
            },
            log_path=directory / f"{controller}.log",
            working_directory=self.code,
        )
        return results


def deployed_function(assembly: Path, emulator: Emulator, handler: str) -> DeployedFunction:
    """Return a function of the stack Operations.

    assembly: Folder with the templates and assets.
    emulator: Where it is deployed.
    Raises UserError if it is not deployed.
    """
    deployed: dict[str, Any] = {
        each.get("Handler", ""): each
        for page in emulator.client("lambda").get_paginator("list_functions").paginate()
        for each in page["Functions"]
    }
    for path in assembly.glob(_OPERATIONS):
        resources: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["Resources"]
        for resource in resources.values():
            properties = resource.get("Properties", {})
            if properties.get("Handler") == handler and handler in deployed:
                asset = str(properties["Code"]["S3Key"]).removesuffix(".zip")
                function = deployed[handler]
                variables = function.get("Environment", {}).get("Variables", {})
                return DeployedFunction(
                    handler, assembly / f"asset.{asset}", function["FunctionArn"], variables
                )
    raise UserError(f"no function with the handler {handler} was deployed")


#: What UpdateSchedule takes. It replaces a schedule as a whole
#: (https://docs.aws.amazon.com/scheduler/latest/APIReference/API_UpdateSchedule.html).
_SCHEDULE_FIELDS = (
    "Name",
    "GroupName",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "FlexibleTimeWindow",
    "Target",
    "Description",
)


def _disable_schedules(emulator: Emulator, function_arn: str) -> None:
    scheduler = emulator.client("scheduler")
    for page in scheduler.get_paginator("list_schedules").paginate():
        for listed in page["Schedules"]:
            if listed["Target"]["Arn"] != function_arn:
                continue
            schedule = scheduler.get_schedule(Name=listed["Name"], GroupName=listed["GroupName"])
            kept = {name: schedule[name] for name in _SCHEDULE_FIELDS if name in schedule}
            scheduler.update_schedule(**kept, State="DISABLED")
