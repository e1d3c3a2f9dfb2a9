"""What is verified: a platform in an account, and its cluster."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from inference_blueprints.deployment.aws.account import Account
from inference_blueprints.deployment.verify.synthesised_platform import SynthesisedPlatform
from inference_blueprints.serving.types import DeploymentPlan, ServingPlan
from inference_blueprints.spec.types import Blueprint

KubernetesObject = dict[str, Any]


class ClusterReader(Protocol):
    """The part of kubectl that looks and changes nothing."""

    def get(self, *arguments: str) -> list[KubernetesObject]:
        """Return objects."""

    def run(self, *arguments: str) -> str:
        """Return what a command prints."""

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command that lasts."""


@dataclass(frozen=True, slots=True)
class VerifiedPlatform:
    """A platform that was deployed.

    Parameters
    ----------
    blueprint, plan
        What was to be deployed.
    assembly
        Its templates as the blueprint makes them now.
    name_or_path
        How the user named the blueprint, for commands.
    """

    account: Account
    blueprint: Blueprint
    plan: ServingPlan
    assembly: SynthesisedPlatform
    name_or_path: str

    @property
    def name(self) -> str:
        """Name of the platform, and of its cluster."""
        return self.blueprint.metadata.name

    @property
    def deploy_command(self) -> str:
        """The command that mends most of what is missing."""
        return f"blueprints deploy {self.name_or_path}"

    def aws(self, words: str) -> str:
        """Return a command of the AWS command line for the platform's region."""
        return f"aws {words} --region {self.account.region}"


@dataclass(frozen=True, slots=True)
class Transferred:
    """What the workers of a deployment count of their transfers of KV cache.

    Parameters
    ----------
    moved_bytes
        Bytes that were moved since they started.
    failures
        Transfers that failed since then.
    """

    moved_bytes: float
    failures: float


@dataclass(frozen=True, slots=True)
class RunningPlatform:
    """A platform with its API server.

    Parameters
    ----------
    transferred
        What had been moved before the models were asked, by release.
    """

    platform: VerifiedPlatform
    kubectl: ClusterReader
    transferred: Mapping[str, Transferred] = field(default_factory=dict)

    @property
    def deployments(self) -> list[DeploymentPlan]:
        """The deployments of all models."""
        return [deployment for model in self.platform.plan.models for deployment in model.deployments]

    def namespace(self, release: str) -> str:
        """Return where a release is.

        Parameters
        ----------
        release
            One that the blueprint deploys.
        """
        return self.platform.assembly.releases[release].namespace


def condition(kubernetes_object: KubernetesObject, name: str) -> KubernetesObject:
    """Return a condition of an object's status; empty where it has none of that name.

    Parameters
    ----------
    kubernetes_object
        As the API server holds it.
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
