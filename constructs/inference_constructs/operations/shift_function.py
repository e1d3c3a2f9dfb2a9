"""The function of the capacity shift, whatever runs the containers."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.operations.controller_function import ControllerFunction, controller_role
from inference_constructs.operations.controller_place import ControllerPlace
from inference_constructs.operations.minute_schedule import MinuteSchedule
from inference_contracts import shift_names

#: Name of the document with the configuration, in the function's code.
SHIFT_DOCUMENT = "shift.json"


class ShiftFunction(Construct):
    """A function that runs each minute. A subclass gives its role access to the cluster.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    code
        Its code, with the document `SHIFT_DOCUMENT`.
    layer_arns
        Layers with numpy.
    batch
        Batch's tables. It may write ceilings, and nothing else.
    shifts
        Whether it may change anything. Otherwise it can only read.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        code: lambda_.Code,
        layer_arns: Sequence[str],
        batch: BatchStore,
        shifts: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = controller_role(self, "Role", place)
        if shifts:
            batch.grant_ceilings(self.role)
        self.function = ControllerFunction(
            self,
            "Minute",
            place=place,
            name=shift_names.SHIFT_CONTROLLER,
            role=self.role,
            code=code,
            handler="capacity_shift.handlers.shift",
            environment={
                shift_names.SHIFT_CONFIGURATION: SHIFT_DOCUMENT,
                shift_names.SHIFT_BATCH_TABLE: batch.table_name,
            },
            # A new process reads two weeks of demand first.
            timeout_seconds=55,
            memory_mib=1769,
            layer_arns=layer_arns,
        )
        MinuteSchedule(
            self,
            "Schedule",
            place=place,
            function=self.function,
            says="Forecasts demand and shifts capacity between real time and batch",
        )
