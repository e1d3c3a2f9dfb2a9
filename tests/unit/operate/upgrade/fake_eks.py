"""EKS's answers about one cluster: botocore's own parsing, pages and errors are at work."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.awsrequest import AWSResponse

from tests.unit.operate.faults import _Body


@dataclass
class FakeEks:
    """A cluster that is well, until a test changes it."""

    version: str | None = "1.35"
    status: str = "ACTIVE"
    """`version`, `status`: Of the control plane; without a version there is no cluster."""
    add_ons: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Version and status by name."""
    nodegroups: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Kubernetes version and status by name."""
    supported: dict[str, list[str]] = field(default_factory=dict)
    """Versions that run on any Kubernetes, by add-on; of each the first is EKS's default."""
    insights: list[dict[str, Any]] = field(default_factory=list)
    """As `list_insights` and `describe_insight` together answer them."""
    asked: list[dict[str, Any]] = field(default_factory=list)

    def into(self, client: Any) -> FakeEks:
        """Answer everything that a client asks."""
        client.meta.events.register_first("before-send.eks", self)
        return self

    def __call__(self, request: Any, **_options: object) -> AWSResponse:
        url = urlsplit(request.url)
        words = [unquote(word) for word in url.path.strip("/").split("/")]
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        status, document = self._answer(words, query, request.body)
        content = json.dumps(document).encode()
        return AWSResponse(request.url, status, {"content-type": "application/json"}, _Body(content))

    def _answer(self, words: list[str], query: dict[str, str], body: bytes) -> tuple[int, dict[str, Any]]:
        if words == ["addons", "supported-versions"]:
            return 200, {"addons": [self._supported(query["addonName"], query["kubernetesVersion"])]}
        if self.version is None:
            return 404, {"__type": "ResourceNotFoundException", "message": "No cluster found"}
        _, cluster, *rest = words
        document: dict[str, Any]
        match rest:
            case []:
                document = {"cluster": {"name": cluster, "version": self.version, "status": self.status}}
            case ["addons"]:
                document = {"addons": list(self.add_ons)}
            case ["addons", name]:
                version, status = self.add_ons[name]
                document = {"addon": {"addonName": name, "addonVersion": version, "status": status}}
            case ["node-groups"]:
                document = {"nodegroups": list(self.nodegroups)}
            case ["node-groups", name]:
                version, status = self.nodegroups[name]
                document = {"nodegroup": {"nodegroupName": name, "version": version, "status": status}}
            case ["insights"]:
                self.asked.append(json.loads(body)["filter"])
                document = {"insights": self.insights}
            case ["insights", identity]:
                document = {"insight": next(each for each in self.insights if each["id"] == identity)}
            case _:
                raise AssertionError(f"nobody answers {words}")
        return 200, document

    def _supported(self, name: str, kubernetes: str) -> dict[str, Any]:
        versions = [
            {
                "addonVersion": version,
                "compatibilities": [{"clusterVersion": kubernetes, "defaultVersion": index == 0}],
            }
            for index, version in enumerate(self.supported.get(name, []))
        ]
        return {"addonName": name, "addonVersions": versions}


def insight(identity: str, status: str, **fields: Any) -> dict[str, Any]:
    """One upgrade insight."""
    return {
        "id": identity,
        "name": f"Check {identity}",
        "category": "UPGRADE_READINESS",
        "insightStatus": {"status": status, "reason": f"reason {identity}"},
        "recommendation": f"mend {identity}",
        **fields,
    }
