"""Looks all the time whether the policy of batch's bucket denies a role that runs."""

from __future__ import annotations

import fnmatch
import json
import threading
from typing import Any, Self

from botocore.exceptions import ClientError

from inference_local.emulator.emulator import Emulator

_LOOK_SECONDS = 0.2


class Denials:
    """Roles of the stack Batch that are denied while a ``with`` block runs.

    Roles are those that the stack has at a moment; the policy is that of the same moment.
    """

    def __init__(self, emulator: Emulator, platform: str) -> None:
        self.seen: set[str] = set()
        self._clients = {name: emulator.client(name) for name in ("cloudformation", "iam", "s3")}
        self._platform = platform
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self.seen |= self._denied()
            except ClientError:  # a role is gone between two calls
                continue

    def _denied(self) -> set[str]:
        [bucket] = [
            each["PhysicalResourceId"]
            for each in self._resources("Data", "AWS::S3::Bucket")
            if each["LogicalResourceId"].startswith("Batch")
        ]
        document = json.loads(self._clients["s3"].get_bucket_policy(Bucket=bucket)["Policy"])
        exempt = [
            statement["Condition"]["ArnNotLike"]["aws:PrincipalArn"]
            for statement in document["Statement"]
            if statement["Effect"] == "Deny" and "ArnNotLike" in statement.get("Condition", {})
        ]
        arns = [
            self._clients["iam"].get_role(RoleName=each["PhysicalResourceId"])["Role"]["Arn"]
            for each in self._resources("Batch", "AWS::IAM::Role")
            if each["LogicalResourceId"].startswith(("Jobs", "Workers"))
        ]
        return {
            arn
            for arn in arns
            for patterns in exempt
            if not any(fnmatch.fnmatchcase(arn, pattern) for pattern in patterns)
        }

    def _resources(self, stack: str, kind: str) -> list[dict[str, Any]]:
        pages = self._clients["cloudformation"].get_paginator("list_stack_resources")
        return [
            each
            for page in pages.paginate(StackName=f"{self._platform}-{stack}")
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] == kind
        ]
