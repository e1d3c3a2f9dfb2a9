"""The address of a platform's batch API."""

from __future__ import annotations

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.cloudformation.deployed_stacks import stack_outputs
from inference_blueprints.spec.types import Batch, Blueprint
from inference_contracts.batch_names import API_OUTPUT
from inference_contracts.errors import UserError


def batch_section(blueprint: Blueprint) -> Batch:
    """Return the batch section of a blueprint. Raises UserError if it has none."""
    section = blueprint.spec.batch
    if section is None:
        raise UserError(
            f"{blueprint.metadata.name}: has no batch; add spec.teams and spec.batch.queues to the "
            "blueprint, and deploy it"
        )
    return section


def batch_address(account: Account, platform: str) -> str:
    """Return the address of a platform's batch API, which ends with ``/v1``.

    account: Account of the platform.
    Raises UserError if batch is not deployed, or AWS does not answer.
    """
    return stack_outputs(account, f"{platform}-Batch", API_OUTPUT)[API_OUTPUT]
