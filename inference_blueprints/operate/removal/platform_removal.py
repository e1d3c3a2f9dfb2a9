"""Deletes a platform, or its stacks that are no longer in the blueprint, and checks the result."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.cloudformation.deployed_stacks import (
    FOUNDATIONS,
    DeployedStack,
    deployed_stacks,
    is_of_platform,
    physical_ids,
    settle,
    waves,
)
from inference_blueprints.operate.cloudformation.stack_events import advice, resource_counts
from inference_blueprints.operate.ecs_cluster import (
    delete_revisions,
    end_services,
    old_revisions,
    unprotect_hosts,
)
from inference_blueprints.operate.removal import leftovers
from inference_blueprints.synthesis import synthesise
from inference_catalog import ServicePrices
from inference_catalog.tags import PLATFORM_TAG
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

#: Seconds between two requests to CloudFormation.
POLL_SECONDS = 2.0
_NESTED_TYPE = "AWS::CloudFormation::Stack"
_CACHE_TYPE = "AWS::ElastiCache::ServerlessCache"


@dataclass(frozen=True, slots=True)
class Retained:
    """A resource that a deleted stack left behind because of its deletion policy."""

    stack: str
    resource_type: str
    physical_id: str
    """`resource_type`, `physical_id`: Such as ``AWS::S3::Bucket`` and the bucket's name."""

    def usd_per_month(self, services: ServicePrices) -> float | None:
        """Return what it costs a month whatever it holds; None if this depends on use or is not known."""
        return services.usd("kms_key") if self.resource_type == "AWS::KMS::Key" else None

    def usd_per_gb_month(self, services: ServicePrices) -> float | None:
        """Return what a GB in it costs a month; None if nothing is stored in it, or no price is known."""
        return services.usd("s3_standard") if self.resource_type == "AWS::S3::Bucket" else None

    def price(self, services: ServicePrices) -> str:
        """Return what it costs in words."""
        monthly, stored = self.usd_per_month(services), self.usd_per_gb_month(services)
        if monthly is not None:
            return f"{monthly:.2f} USD a month"
        return "no known price" if stored is None else f"{stored:g} USD a month per GB that it holds"


def delete_stacks(
    cloudformation: Any, stacks: Sequence[DeployedStack], *, blueprint: str, say: Callable[[str], None]
) -> list[Retained]:
    """Delete stacks at the same time, including protected ones.

    stacks: Stacks that do not depend on one another.
    blueprint: Name or path, for commands in messages.
    say: Called with a line at the start and the end of each deletion.
    Returns: Resources that CloudFormation kept.
    Raises UserError if a stack cannot be deleted, with the failed resources, the reasons and what to do.
    """
    snapshots = [kept for stack in stacks for kept in _last_snapshots(cloudformation, stack)]
    for stack in stacks:
        say(f"{stack.name}: deleting")
        cloudformation.update_termination_protection(
            EnableTerminationProtection=False, StackName=stack.stack_id
        )
        cloudformation.delete_stack(StackName=stack.stack_id)
    failures = [line for stack in stacks for line in _outcome(cloudformation, stack, say)]
    if failures:
        advices = dict.fromkeys(each for line in failures if (each := advice(line, blueprint)))
        raise UserError("\n".join([*failures, *(f"what to do: {each}" for each in advices)]))
    return [*(kept for stack in stacks for kept in _retained(cloudformation, stack)), *snapshots]


def _outcome(cloudformation: Any, stack: DeployedStack, say: Callable[[str], None]) -> list[str]:
    """Wait for the end of a deletion and return the reasons if it failed."""
    while (status := _status(cloudformation, stack)) == "DELETE_IN_PROGRESS":
        time.sleep(POLL_SECONDS)
    if status == "DELETE_COMPLETE":
        say(f"{stack.name}: deleted")
        return []
    reasons = [
        f"{stack.name}: {event['ResourceType']} {event['LogicalResourceId']}: {event['ResourceStatusReason']}"
        for event in _newest_events(cloudformation, stack)
        if event["ResourceStatus"] == "DELETE_FAILED" and event["ResourceType"] != _NESTED_TYPE
    ]
    return reasons or [f"{stack.name}: is {status} and not deleted"]


def _status(cloudformation: Any, stack: DeployedStack) -> str:
    [description] = cloudformation.describe_stacks(StackName=stack.stack_id)["Stacks"]
    return str(description["StackStatus"])


def _newest_events(cloudformation: Any, stack: DeployedStack) -> Iterator[dict[str, Any]]:
    """Iterate over the events of the last deletion, the newest first."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack.stack_id)
    for event in _events(pages):
        yield event
        is_stack = event["PhysicalResourceId"] == stack.stack_id
        if is_stack and event["ResourceStatus"] == "DELETE_IN_PROGRESS":
            return


def _events(pages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for page in pages:
        yield from page["StackEvents"]


def _retained(cloudformation: Any, stack: DeployedStack) -> Iterator[Retained]:
    yield from _skipped(stack, _newest_events(cloudformation, stack))


def _skipped(stack: DeployedStack, events: Iterable[dict[str, Any]]) -> Iterator[Retained]:
    for event in events:
        if event["ResourceStatus"] == "DELETE_SKIPPED":
            yield Retained(stack.name, event["ResourceType"], event["PhysicalResourceId"])


def _kept_earlier(cloudformation: Any, stack: DeployedStack) -> Iterator[Retained]:
    """Yield what a stack kept before its deletion, where `_exists` knows whether it is still there.

    CloudFormation also keeps what has the deletion policy ``Retain`` when it rolls a creation back, and then
    the stack does not know it any more (CloudFormation Template Reference, DeletionPolicy attribute,
    RetainExceptOnCreate; aws/serverless-application-model#1819).
    """
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack.stack_id)
    kept = dict.fromkeys(_skipped(stack, _events(pages)))
    yield from (each for each in kept if each.resource_type in _KNOWN_TYPES)


def _last_snapshots(cloudformation: Any, stack: DeployedStack) -> Iterator[Retained]:
    """Yield the snapshots that ElastiCache makes of caches before it deletes them, and then bills.

    No event of the stack names them. Their name is a property of the cache
    (https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-elasticache-serverlesscache.html).
    """
    if stack.status == "REVIEW_IN_PROGRESS":  # it has no template yet
        return
    template = cloudformation.get_template(StackName=stack.stack_id, TemplateStage="Original")["TemplateBody"]
    for resource in template.get("Resources", {}).values():
        properties = resource.get("Properties", {})
        if resource["Type"] == _CACHE_TYPE and "FinalSnapshotName" in properties:
            yield Retained(stack.name, f"last snapshot of {_CACHE_TYPE}", properties["ServerlessCacheName"])


#: Types of which `_exists` knows whether a resource is still there.
_KNOWN_TYPES = frozenset({"AWS::KMS::Key", "AWS::S3::Bucket"})


def _exists(account: Account, kept: Retained) -> bool:
    """Whether a resource that a stack kept is still there, and billed. Of other types it is not known."""
    try:
        if kept.resource_type == "AWS::KMS::Key":
            key = account.client("kms").describe_key(KeyId=kept.physical_id)["KeyMetadata"]
            return not str(key["KeyState"]).startswith("Pending")
        if kept.resource_type == "AWS::S3::Bucket":
            account.client("s3").head_bucket(Bucket=kept.physical_id)
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NotFoundException", "NoSuchBucket"):
            raise
        return False
    return True


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
        self._settle()
        left = {each.name for each in self.stacks()}
        for wave in waves(each for each in stacks if each.name in left):
            retained += self._delete(wave)
        return retained

    def destroy(self) -> list[Retained]:
        """Delete everything: models, then pools with their nodes, then the stacks on which they depend.

        Returns: Data that the blueprint keeps.
        Raises UserError if something cannot be deleted, or something billable is left. Another run continues
            from there.
        """
        self._settle()
        retained: list[Retained] = []
        if self._on_ecs:
            # The capacity shift would start tasks again.
            controllers = f"{self._platform}-Operations"
            retained += self.prune([stack for stack in self.stacks() if stack.name == controllers])
            self._end_tasks()
        retained += self._delete_from(_CAPACITY)
        self._drain()
        retained += self._delete_from(_CLUSTER)
        self._sweep()
        retained += self._delete_from(0)
        self._prove()
        known = {each.physical_id for each in retained}
        return [*retained, *(each for each in self._kept_before() if each.physical_id not in known)]

    def _settle(self) -> None:
        """Wait for what a killed operation has begun."""
        with readable_errors():
            settle(self._account.client("cloudformation"), self._platform, self._say)

    def _kept_before(self) -> list[Retained]:
        """Return what deleted stacks of the platform kept, now or earlier, and that still exists.

        A run that was killed named nothing. CloudFormation knows a deleted stack for 90 days (API reference,
        ListStacks).
        """
        client = self._account.client("cloudformation")
        with readable_errors():
            pages = client.get_paginator("list_stacks").paginate(StackStatusFilter=["DELETE_COMPLETE"])
            gone = [
                DeployedStack(each["StackName"], each["StackId"], each["StackStatus"], 0)
                for page in pages
                for each in page["StackSummaries"]
                if each["StackName"].startswith(f"{self._platform}-")
            ]
            found = dict.fromkeys(
                kept
                for stack in gone
                if is_of_platform(client, stack, self._platform)
                for kept in (
                    *_retained(client, stack),
                    *_kept_earlier(client, stack),
                    *_last_snapshots(client, stack),
                )
            )
            return [kept for kept in found if _exists(self._account, kept)]

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
