"""A platform that is deployed for real: CDK's command line, emulated AWS, a real API server."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from botocore.credentials import Credentials

from inference_blueprints.operate.kubernetes import Kubectl
from inference_contracts.cluster_token import cluster_token
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import deploy

Template = dict[str, Any]


@dataclass(frozen=True)
class Deployment:
    """Stacks of one name on one emulator."""

    emulator: Emulator
    logs: Path

    def deploy(self, assembly: Path, *stacks: str) -> None:
        """Deploy every stack of an assembly, or some with all that they depend on."""
        deploy(
            self.emulator,
            assembly,
            log_path=self.logs / f"deploy-{len(list(self.logs.iterdir()))}.log",
            on_line=lambda _: None,
            on_event=lambda _: None,
            stacks=stacks,
        )

    def has(self, assembly: Path) -> bool:
        """Whether every stack of an assembly is deployed as it is there."""
        cloudformation = self.emulator.client("cloudformation")
        states = self.stacks()
        wanted = {path.name.removesuffix(".template.json"): path for path in assembly.glob("*.template.json")}
        return all(
            states.get(name, "").endswith("_COMPLETE")
            and cloudformation.get_template(StackName=name)["TemplateBody"] == json.loads(path.read_text())
            for name, path in wanted.items()
        )

    @property
    def kubectl(self) -> Kubectl:
        """The administrator of the cluster ``quickstart``."""
        return self.administrator("quickstart")

    def administrator(self, cluster: str) -> Kubectl:
        """The administrator of a cluster, in its last incarnation."""
        return Kubectl(self._administrator(cluster))

    def _administrator(self, cluster: str) -> Path:
        found = self.emulator.control_planes_directory.glob(f"clusters/*{cluster}-*/administrator.kubeconfig")
        return max(found, key=os.path.getmtime)

    def as_root(self, cluster: str) -> Kubectl:
        """The account's root user, by a token as ``aws eks get-token`` makes it."""
        known = self.emulator.environment()
        credentials = Credentials(known["AWS_ACCESS_KEY_ID"], known["AWS_SECRET_ACCESS_KEY"])
        bearer = cluster_token(credentials, self.emulator.region, cluster)
        path = self.logs / "root.kubeconfig"
        configuration = yaml.safe_load(self._administrator(cluster).read_text())
        configuration["users"][0]["user"] = {"token": bearer}
        path.write_text(yaml.safe_dump(configuration))
        return Kubectl(path)

    def stacks(self) -> dict[str, str]:
        """Name to status of every stack."""
        # Not DescribeStacks, to which the emulator answers late while a stack changes.
        answer = self.emulator.client("cloudformation").list_stacks()
        found = {stack["StackName"]: stack["StackStatus"] for stack in answer["StackSummaries"]}
        return {name: status for name, status in found.items() if status != "DELETE_COMPLETE"}


def names(kubectl: Kubectl, kind: str, *options: str) -> set[str]:
    """Names of the objects of a kind."""
    return {item["metadata"]["name"] for item in kubectl.get(kind, *options)}


def edited(assembly: Path, target: Path, stack: str, edit: Callable[[Template], None]) -> Path:
    """Copy an assembly and change one template, as if the app had written it so."""
    shutil.copytree(assembly, target, copy_function=os.link)
    path = target / f"{stack}.template.json"
    old = next(
        name
        for name, asset in json.loads((target / f"{stack}.assets.json").read_text())["files"].items()
        if asset["source"]["path"] == path.name
    )
    template = json.loads(path.read_text())
    edit(template)
    text = json.dumps(template)
    _replace(path, text)
    # Templates are published under the hash of their content: the old one would count as published.
    new = hashlib.sha256(text.encode()).hexdigest()
    for file in (target / f"{stack}.assets.json", target / "manifest.json"):
        _replace(file, file.read_text().replace(old, new))
    return target


def resource(template: Template, resource_type: str, words: str) -> dict[str, Any]:
    """Properties of the one resource of a type whose text has these words."""
    found: dict[str, Any]
    (found,) = (
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == resource_type and words in json.dumps(each["Properties"])
    )
    return found


def _replace(path: Path, text: str) -> None:
    """Write a file anew: the old one is linked from the assembly that it was copied from."""
    path.unlink()
    path.write_text(text)
