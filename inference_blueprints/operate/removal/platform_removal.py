"""Deletes a platform, or its stacks that are no longer in the blueprint, and checks the result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.cloudformation.deployed_stacks import (
    FOUNDATIONS,
    DeployedStack,
    deployed_stacks,
    physical_ids,
    waves,
)
from inference_blueprints.operate.cloudformation.stack_events import resource_counts
from inference_blueprints.operate.ecs.old_revisions import delete_revisions, old_revisions
from inference_blueprints.operate.ecs.service_ends import end_services, unprotect_hosts
from inference_blueprints.operate.removal import leftovers
from inference_blueprints.operate.removal.stack_deletion import Retained, delete_stacks
from inference_blueprints.synthesis import synthesise
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.errors import UserError

#: Maximum time in seconds for nodes to end after their pools are deleted.
DRAIN_SECONDS = 900.0
#: Maximum time in seconds to delete resources that no stack owns.
SWEEP_SECONDS = 600.0
_CLUSTER, _PLATFORM, _CAPACITY = (FOUNDATIONS.index(kind) for kind in ("Cluster", "Platform", "Capacity"))


class Removal:
    """Implements `destroy` and `prune` for one platform.

    blueprint: Name or path, for commands in messages.
    say: Called with each line for the user.
    on_ecs: Whether its models run on Amazon ECS.
    """

    def __init__(
        self,
        account: Account,
        platform: str,
        *,
        blueprint: str,
        say: Callable[[str], None],
        on_ecs: bool = False,
    ) -> None:
        self._account = account
        self._platform = platform
        self._blueprint = blueprint
        self._say = say
        self._on_ecs = on_ecs

    def stacks(self) -> list[DeployedStack]:
        """Return the platform's stacks in the account. Raises UserError if AWS cannot be asked."""
        with readable_errors():
            return deployed_stacks(self._account.client("cloudformation"), self._platform)

    def unnamed_stacks(self) -> list[DeployedStack]:
        """Return the platform's stacks that are no longer in the blueprint.

        Raises UserError if the blueprint cannot be synthesised or AWS cannot be asked.
        """
        with tempfile.TemporaryDirectory() as directory:
            synthesise(self._blueprint, Path(directory))
            named = resource_counts(Path(directory))
        return [stack for stack in self.stacks() if stack.name not in named]

    def prune(self, stacks: Sequence[DeployedStack]) -> list[Retained]:
        """Delete some stacks, in the order of their dependencies.

        Raises UserError if one cannot be deleted.
        """
        retained: list[Retained] = []
        for wave in waves(stacks):
            retained += self._delete(wave)
        return retained

    def destroy(self) -> list[Retained]:
        """Delete everything: models, then pools with their nodes, then the stacks on which they depend.

        Returns: Data that the blueprint keeps.
        Raises UserError if something cannot be deleted, or something billable is left. Another run continues
            from there.
        """
        if self._on_ecs:
            self._end_tasks()
        retained = self._delete_from(_CAPACITY)
        self._drain()
        retained += self._delete_from(_CLUSTER)
        self._sweep()
        retained += self._delete_from(0)
        self._prove()
        return retained

    def old_revisions(self) -> list[str]:
        """Return inactive revisions of task definitions. None are on EKS.

        Raises UserError if AWS cannot be asked.
        """
        if not self._on_ecs:
            return []
        with readable_errors():
            return old_revisions(self._account, self._platform, tag=PLATFORM_TAG)

    def delete_revisions(self, arns: Sequence[str]) -> list[str]:
        """Delete revisions of task definitions, and return the names of those that AWS accepted.

        Raises UserError if AWS cannot be asked.
        """
        with readable_errors():
            return delete_revisions(self._account, arns)

    def _end_tasks(self) -> None:
        """Let the streams of all models end, and let their hosts go."""
        with readable_errors():
            end_services(self._account, self._platform, patience_seconds=DRAIN_SECONDS, say=self._say)
            unprotect_hosts(self._account, self._platform, tag=PLATFORM_TAG)

    def _delete_from(self, level: int) -> list[Retained]:
        """Delete the stacks of a level and above it, the highest first."""
        return self.prune([stack for stack in self.stacks() if stack.level >= level])

    def _drain(self) -> None:
        """Wait until Karpenter has ended the nodes of the deleted pools, while Karpenter is still there."""
        deadline = time.monotonic() + DRAIN_SECONDS
        if not any(stack.level == _PLATFORM for stack in self.stacks()):
            return
        while nodes := self._nodes():
            if time.monotonic() > deadline:
                self._say(f"nodes that Karpenter did not end in time: {', '.join(nodes)}")
                return
            time.sleep(leftovers.POLL_SECONDS)

    def _nodes(self) -> list[str]:
        with readable_errors():
            return leftovers.nodes_of_pools(self._account, self._platform)

    def _sweep(self) -> None:
        """Delete resources that no stack owns, before their network is deleted."""
        with readable_errors():
            owned = physical_ids(self._account.client("cloudformation"), self.stacks())
            leftovers.sweep(
                self._account, self._platform, owned=owned, patience_seconds=SWEEP_SECONDS, say=self._say
            )

    def _prove(self) -> None:
        """Check that nothing is left."""
        with readable_errors():
            left = leftovers.leftovers(self._account, self._platform)
        names = [f"{each.kind} {each.identifier}" for each in left]
        names += [f"stack {stack.name}" for stack in self.stacks()]
        if names:
            raise UserError(
                f"these billable resources are left: {', '.join(names)}; "
                f"run `blueprints destroy {self._blueprint}` again, or delete them by hand"
            )

    def _delete(self, wave: Sequence[DeployedStack]) -> list[Retained]:
        with readable_errors():
            return delete_stacks(
                self._account.client("cloudformation"), wave, blueprint=self._blueprint, say=self._say
            )
