"""Alarms on hardware: what tells GPU health of faults within seconds, as data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict, model_validator

from inference_blueprints.render.monitoring.alarm_table import MAX_CONTRIBUTORS
from inference_blueprints.render.monitoring.recording_rules import RecordingRule
from inference_blueprints.spec.types import Pool
from inference_contracts.health_names import CODE_LABEL, FaultKind
from inference_contracts.operations_names import HARDWARE_FAULTS_RUNBOOK

#: Series that Prometheus records while a node has a fault.
HARDWARE_FAULTS: Final = "node_hardware_faults"
_KIND_LABEL: Final = "kind"
_FILE = Path(__file__).parent / "data/hardware_alarms.yaml"


class RecordedFault(BaseModel):
    """A rule of a row: ``hardware_alarms.yaml`` explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    promql: str
    code: str | None = None


class HardwareAlarm(BaseModel):
    """A row of ``hardware_alarms.yaml``, which explains its fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: FaultKind
    needs: Literal["nvidia", "neuron", "efa"]
    says: str
    faults: tuple[RecordedFault, ...] = ()
    cloudwatch_query: str | None = None
    pending_seconds: int
    recovery_seconds: int
    source: str
    evaluation_seconds: int = 60
    """CloudWatch's shortest interval is 10 s. Series arrive each minute, so it would find nothing sooner."""

    @model_validator(mode="before")
    @classmethod
    def _rename(cls, row: dict[str, object]) -> dict[str, object]:
        """Read `query`, which is a method here."""
        return {("cloudwatch_query" if name == "query" else name): value for name, value in row.items()}

    @property
    def runbook(self) -> str:
        """Path of the runbook below the repository. All kinds have one."""
        return HARDWARE_FAULTS_RUNBOOK

    def query(self, platform: str) -> str:
        """Return the query whose answer has a series for each node and code.

        platform: `metadata.name`.
        """
        if self.cloudwatch_query:
            return Template(self.cloudwatch_query).substitute(platform=platform, most=MAX_CONTRIBUTORS)
        # CloudWatch lists 100 contributors. More nodes with one fault at a time are not single broken GPUs.
        return (
            f"topk({MAX_CONTRIBUTORS}, max by (pool, node, {CODE_LABEL}) "
            f'({HARDWARE_FAULTS}{{platform="{platform}",{_KIND_LABEL}="{self.kind}"}}))'
        )

    def rules(self, platform: str) -> tuple[RecordingRule, ...]:
        """Return the recording rules of the row.

        platform: `metadata.name`.
        """
        selector = f'platform="{platform}",pool!=""'
        return tuple(
            RecordingRule(
                HARDWARE_FAULTS,
                Template(fault.promql).substitute(labels=selector),
                {_KIND_LABEL: self.kind} | ({CODE_LABEL: fault.code} if fault.code else {}),
                # Of healthy nodes there is none.
                series=0,
            )
            for fault in self.faults
        )


def hardware_alarms(pools: Sequence[Pool]) -> tuple[HardwareAlarm, ...]:
    """Return the alarms that the hardware of some pools can raise.

    pools: Section of the blueprint.
    """
    types = [each for pool in pools for each in pool.types]
    makers = {each.accelerator.manufacturer for each in types if each.accelerator}
    has = {
        "nvidia": "nvidia" in makers,
        "neuron": "aws" in makers,
        "efa": any(pool.efa for pool in pools),
    }
    return tuple(row for row in hardware_alarm_rows() if has[row.needs])


@cache
def hardware_alarm_rows() -> tuple[HardwareAlarm, ...]:
    """Return every row."""
    return tuple(HardwareAlarm.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
