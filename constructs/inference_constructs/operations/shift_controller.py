"""The capacity shift: a function that moves capacity between real time and batch each minute."""

from __future__ import annotations

from constructs import Construct

from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.operations.controller_function import (
    ControllerFunction,
    MinuteSchedule,
    controller_code,
    controller_role,
)
from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import shift_names
from inference_contracts.shift_names import ShiftConfiguration

#: Name of the document with the configuration, in the function's code.
SHIFT_DOCUMENT = "shift.json"


class ShiftController(Construct):
    """A function that forecasts demand, and sets floors of workers and quotas of batch.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    shift
        What it moves, and whether it does or only observes.
    batch
        Batch's tables. It may write ceilings, and nothing else.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        shift: ShiftConfiguration,
        batch: BatchStore,
    ) -> None:
        super().__init__(scope, construct_id)
        role = controller_role(self, "Role", place)
        if shift.action == "shift":
            batch.grant_ceilings(role)
        self.function = ControllerFunction(
            self,
            "Minute",
            place=place,
            name=shift_names.SHIFT_CONTROLLER,
            role=role,
            code=controller_code("capacity_shift", {SHIFT_DOCUMENT: shift.as_json()}),
            handler="capacity_shift.handlers.shift",
            environment={
                shift_names.SHIFT_CONFIGURATION: SHIFT_DOCUMENT,
                shift_names.SHIFT_BATCH_TABLE: batch.table_name,
            },
            # A new process reads two weeks of demand first.
            timeout_seconds=55,
        )
        MinuteSchedule(
            self,
            "Schedule",
            place=place,
            function=self.function,
            says="Forecasts demand and shifts capacity between real time and batch",
        )
        place.cluster.grant_shift(self, role, shift)
