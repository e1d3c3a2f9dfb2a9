"""The platform that is verified: an account and its cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from inference_blueprints.deployment.aws.account import Account
from inference_blueprints.deployment.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.serving.types import DeploymentPlan, ServingPlan
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
    """A platform that was deployed.

    Parameters
    ----------
    blueprint, plan
        The blueprint and its plan.
    assembly
        The blueprint's present templates.
    name_or_path
        Name or path of the blueprint, for commands.
    now
        Time of the checks, with a time zone.
    """

    account: Account
    blueprint: Blueprint
    plan: ServingPlan
    assembly: SynthesisedPlatform
    name_or_path: str
    now: datetime

    @property
    def name(self) -> str:
        """Name of the platform, and of its cluster."""
        return self.blueprint.metadata.name

    @property
    def deploy_command(self) -> str:
        """The command that fixes most problems."""
        return f"blueprints deploy {self.name_or_path}"

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the platform's region."""
        return f"aws {words} --region {self.account.region}"


@dataclass(frozen=True, slots=True)
class Transferred:
    """Metrics of KV transfers of a deployment's workers.

    Parameters
    ----------
    moved_bytes
        Bytes that were transferred since the workers started.
    failures
        Failed transfers since then.
    seconds, transfers
        Time of all transfers, and their number; 0 if the engine does not report them.
    """

    moved_bytes: float
    failures: float
    seconds: float = 0.0
    transfers: float = 0.0


@dataclass(frozen=True, slots=True)
class RunningPlatform:
    """A platform with its API server.

    Parameters
    ----------
    transferred
        Transfers before the requests of the checks, by release.
    """

    platform: VerifiedPlatform
    kubectl: ClusterReader
    transferred: Mapping[str, Transferred] = field(default_factory=dict)

    @property
    def deployments(self) -> list[DeploymentPlan]:
        """The deployments of all models."""
        return [deployment for model in self.platform.plan.models for deployment in model.deployments]

    def namespace(self, release: str) -> str:
        """Return the namespace of a release.

        Parameters
        ----------
        release
            A release of the blueprint.
        """
        return self.platform.assembly.releases[release].namespace


def condition(kubernetes_object: KubernetesObject, name: str) -> KubernetesObject:
    """Return a condition of an object's status; empty if it has none of this name.

    Parameters
    ----------
    kubernetes_object
        The object from the API server.
    """
    conditions = kubernetes_object.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def holds(kubernetes_object: KubernetesObject, name: str) -> bool:
    """Whether a condition is true.

    Parameters
    ----------
    kubernetes_object
        As the API server holds it.
    """
    return condition(kubernetes_object, name).get("status") == "True"
