"""A user's blueprint, and its deployed cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.operate.upgrade import proposal, upgrade_checks
from inference_blueprints.spec.source import shipped
from tests.unit.operate.upgrade.fake_eks import FakeEks

MakeCluster = Callable[..., FakeEks]


class FakeKubectl:
    """Nodes and disruption budgets of an API server, or an API server that does not answer."""

    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = []
        self.budgets: list[dict[str, Any]] = []
        self.failure = ""

    def get(self, kind: str, *_arguments: str) -> list[dict[str, Any]]:
        if self.failure:
            raise KubectlFailed(self.failure)
        return self.nodes if kind == "nodes" else self.budgets


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(shipped()["quickstart-g6e"].read_text())
    return path


@pytest.fixture
def kubectl(monkeypatch: pytest.MonkeyPatch) -> FakeKubectl:
    fake = FakeKubectl()
    monkeypatch.setattr(upgrade_checks, "connect", lambda *_arguments: fake)
    return fake


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    """An account in which only EKS answers, because moto would answer first."""
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setattr(Account, "number", "123456789012")
    return Account("us-west-2")


@pytest.fixture
def cluster(account: Account, kubectl: FakeKubectl, monkeypatch: pytest.MonkeyPatch) -> MakeCluster:
    """Add a cluster to the account that proposals use."""
    monkeypatch.setattr(proposal, "Account", lambda _region: account)
    monkeypatch.setattr(upgrade_checks, "synthesise", lambda _file, _folder: None)
    monkeypatch.setattr(
        upgrade_checks, "read_change", lambda *_arguments: PlatformChange(account, {}, {}, {})
    )
    return lambda **fields: FakeEks(**fields).into(account.client("eks"))
