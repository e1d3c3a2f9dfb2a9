"""Finds the emulated signal store."""

from __future__ import annotations

from inference_blueprints.operate.signals import store_address, stores_stack
from inference_local.emulator.emulator import Emulator
from inference_local.run_state import RunningSignals


def find_signals(emulator: Emulator, platform: str) -> RunningSignals:
    """Return the address of the deployed signal store and credentials for it.

    emulator: The emulator that the platform is deployed to.
    platform: ``metadata.name`` of a platform with a signal store.
    """
    client = emulator.client("cloudformation")
    (stack,) = client.describe_stacks(StackName=stores_stack(platform))["Stacks"]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    address = store_address(outputs, emulator.region, authority=str(emulator.cache_authority))
    return RunningSignals(address, emulator.environment())
