"""The platform that is verified: an account and its cluster."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Blueprint

KubernetesObject = dict[str, Any]


class ClusterReader(Protocol):
    """The read-only part of kubectl."""

    def get(self, *arguments: str) -> list[KubernetesObject]:
        """Return objects."""

    def run(self, *arguments: str) -> str:
        """Return the output of a command."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that keeps running."""


@dataclass(frozen=True, slots=True)
class VerifiedPlatform:
    """A platform that was deployed."""

    account: Account
    blueprint: Blueprint
    plan: ServingPlan
    assembly: SynthesisedPlatform
    """The blueprint's present templates."""
    name_or_path: str
    """Name or path of the blueprint, for commands."""
    now: datetime
    """Time of the checks, with a time zone."""

    @property
    def name(self) -> str:
        """Name of the platform, and of its cluster."""
        return self.blueprint.metadata.name

    @property
    def deploy_command(self) -> str:
        """The command that fixes most problems."""
        return f"blueprints deploy {self.name_or_path}"

    def namespace(self, release: str) -> str:
        """Return the namespace of a release of the blueprint."""
        return self.assembly.releases[release].namespace

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the platform's region."""
        return f"aws {words} --region {self.account.region}"


def condition(kubernetes_object: KubernetesObject, name: str) -> KubernetesObject:
    """Return a condition of an object's status; empty if it has none of this name.

    kubernetes_object: The object from the API server.
    """
    conditions = kubernetes_object.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def holds(kubernetes_object: KubernetesObject, name: str) -> bool:
    """Whether a condition is true.

    kubernetes_object: As the API server holds it.
    """
    return condition(kubernetes_object, name).get("status") == "True"
