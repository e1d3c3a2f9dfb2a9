"""Finds, starts and follows the deployed state machine that bakes snapshots."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.image_cache.snapshot_status import WantedSnapshot
from inference_catalog import image_cache
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

POLL_SECONDS = 10.0
_RUNNING = "RUNNING"
_SUCCEEDED = "SUCCEEDED"

#: Text for the user by state of the state machine; other states are steps between these.
STEPS: Mapping[str, str] = MappingProxyType(
    {
        "StartInstance": "starting an instance",
        "PullImages": "waiting for the instance",
        "WaitForImages": "pulling the images",
        "WaitForInstance": "stopping the instance",
        "WaitForSnapshot": "waiting for the snapshot to be complete",
        "TerminateInstance": "terminating the instance",
    }
)


@dataclass(frozen=True, slots=True)
class Baked:
    """Result of a bake."""

    pool: str
    snapshot_id: str | None
    """The snapshot; None if there is none."""
    failure: str = ""
    """Reason if there is no snapshot, else empty."""


class Baker:
    """Client of the deployed state machine of a platform.

    blueprint: Name or path, for commands in messages.
    Raises UserError if the state machine is not deployed.
    """

    def __init__(self, account: Account, platform: str, *, blueprint: str) -> None:
        self._states = account.client("stepfunctions")
        self._blueprint = blueprint
        self._stack = f"{platform}-{image_cache.STACK}"
        with readable_errors():
            outputs = self._outputs(account.client("cloudformation"))
        self._state_machine = outputs[image_cache.STATE_MACHINE_OUTPUT]
        self._bottlerocket = outputs[image_cache.BOTTLEROCKET_OUTPUT]

    def running(self, pool: str) -> list[str]:
        """Return the ARNs of the running executions for a pool."""
        pages = self._states.get_paginator("list_executions").paginate(
            stateMachineArn=self._state_machine, statusFilter=_RUNNING
        )
        with readable_errors():
            return [
                execution["executionArn"]
                for page in pages
                for execution in page["executions"]
                if execution["name"].split("_")[0] == pool
            ]

    def bake(self, snapshots: Sequence[WantedSnapshot], say: Callable[[str], None]) -> Iterator[Baked]:
        """Bake for several pools at once, and yield each result when it is there.

        A running bake with the same images is followed and not started again.

        say: Called with a line for each step.
        Raises UserError if the deployed Bottlerocket version differs, a pool has no image, or AWS refuses.
        """
        for each in snapshots:
            self._demand_sense(each)
        with readable_errors():
            executions = {each.pool: self._start(each, say) for each in snapshots}
        steps: dict[str, str] = {}
        while executions:
            for pool, execution in list(executions.items()):
                with readable_errors():
                    answer = self._states.describe_execution(executionArn=execution)
                    if answer["status"] == _RUNNING:
                        self._tell(pool, execution, steps, say)
                        continue
                del executions[pool]
                yield self._ended(pool, answer)
            if executions:
                time.sleep(POLL_SECONDS)

    def _outputs(self, cloudformation: Any) -> dict[str, str]:
        """Return the outputs of the stack."""
        try:
            [stack] = cloudformation.describe_stacks(StackName=self._stack)["Stacks"]
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            raise UserError(
                f"the stack {self._stack}, which bakes images, does not exist; "
                f"run `blueprints deploy {self._blueprint}` first"
            ) from error
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        if image_cache.STATE_MACHINE_OUTPUT not in outputs:
            raise UserError(
                f"the stack {self._stack} is {stack['StackStatus']} and cannot bake; "
                f"run `blueprints deploy {self._blueprint}` first"
            )
        return outputs

    def _demand_sense(self, wanted: WantedSnapshot) -> None:
        """Refuse to bake a snapshot that the nodes cannot use, or that would be empty."""
        if wanted.bottlerocket != self._bottlerocket:
            raise UserError(
                f"the stack {self._stack} bakes with Bottlerocket {self._bottlerocket}, the nodes have "
                f"{wanted.bottlerocket}; run `blueprints deploy {self._blueprint}` first; if the lock holds "
                f"pool '{wanted.pool}', run `blueprints upgrade {self._blueprint} --apply` before that"
            )
        if not wanted.images:
            raise UserError(
                f"pool '{wanted.pool}' has no workers, so there is no image to bake; use it in a model"
            )

    def _start(self, wanted: WantedSnapshot, say: Callable[[str], None]) -> str:
        """Start an execution, or find a running one with the same input."""
        order = json.dumps(
            {
                "pool": wanted.pool,
                "architecture": wanted.architecture,
                "images": list(wanted.images),
                "imagesDigest": wanted.images_digest,
                "sizeGib": wanted.size_gib,
            },
            sort_keys=True,
        )
        # The name is also EC2's client token, which has at most 64 characters; a pool's name has at most 40.
        name = f"{wanted.pool}_{hashlib.sha256(order.encode()).hexdigest()[:12]}"
        for execution in self.running(wanted.pool):
            if execution.rpartition(":")[2].startswith(f"{name}_"):
                say(f"{wanted.pool}: a bake is already running")
                return execution
        say(f"{wanted.pool}: baking {', '.join(wanted.images)}")
        answer = self._states.start_execution(
            stateMachineArn=self._state_machine, name=f"{name}_{int(time.time())}", input=order
        )
        return str(answer["executionArn"])

    def _tell(self, pool: str, execution: str, steps: dict[str, str], say: Callable[[str], None]) -> None:
        """Report each step of a bake once."""
        events = self._states.get_execution_history(executionArn=execution, reverseOrder=True, maxResults=20)[
            "events"
        ]
        entered = (event["stateEnteredEventDetails"]["name"] for event in events
                   if "stateEnteredEventDetails" in event)  # fmt: skip
        step = next((STEPS[name] for name in entered if name in STEPS), None)
        if step and steps.get(pool) != step:
            steps[pool] = step
            say(f"{pool}: {step}")

    def _ended(self, pool: str, answer: Mapping[str, Any]) -> Baked:
        """Return the result of an execution."""
        if answer["status"] == _SUCCEEDED:
            return Baked(pool, json.loads(answer["output"])["snapshotId"])
        if answer["status"] == "FAILED":
            return Baked(pool, None, answer.get("cause", answer.get("error", "no reason was given")))
        return Baked(
            pool,
            None,
            f"the execution was stopped ({answer['status']}), so its instance may still run; "
            f"look for instances with the tag {image_cache.POOL_TAG}={pool}",
        )
