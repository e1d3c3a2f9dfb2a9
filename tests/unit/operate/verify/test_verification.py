"""The whole of `verify`: who is let in, what is asked in which order, and that nothing is hidden."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Self, cast
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from botocore.credentials import Credentials

from inference_blueprints.operate import kubernetes
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.kubernetes import KubectlFailed, connect, forward_port
from inference_blueprints.operate.verify import endpoint_checks, verification
from inference_blueprints.operate.verify.endpoint_checks import CheckedEndpoint
from inference_blueprints.operate.verify.synthesised_platform import read_assembly
from inference_blueprints.operate.verify.verification import CLUSTER_CHECKS, verify_cluster
from inference_blueprints.operate.verify.verified_platform import VerifiedPlatform
from inference_contracts.cluster_token import cluster_token
from inference_contracts.errors import UserError
from tests.unit.operate.faults import Faults, query_error
from tests.unit.operate.verify.recorded import KubernetesObject, RecordedCluster

MakePlatform = Callable[..., VerifiedPlatform]
NAME = "p5en-disaggregated"


def made(account: Account, *, public: bool) -> None:
    subnets = account.client("ec2").describe_subnets()["Subnets"]  # one in each zone
    account.client("eks").create_cluster(
        name=NAME,
        version="1.35",
        roleArn="arn:aws:iam::123456789012:role/cluster",
        resourcesVpcConfig={
            "subnetIds": [each["SubnetId"] for each in subnets],
            "endpointPublicAccess": public,
        },
    )


# Who is let in


def test_a_token_is_a_signed_question_bound_to_the_cluster() -> None:
    made_token = cluster_token(Credentials("AKID", "secret", "session"), "us-west-2", "mine")
    prefix, _, encoded = made_token.partition(".")
    address = urlsplit(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())
    query = {name: values[0] for name, values in parse_qs(address.query).items()}
    assert prefix == "k8s-aws-v1"
    assert address.netloc == "sts.us-west-2.amazonaws.com"
    assert query["X-Amz-SignedHeaders"] == "host;x-k8s-aws-id"
    assert query["X-Amz-Security-Token"] == "session"
    assert "secret" not in address.query


def test_the_token_lies_where_nobody_else_reads_it(account: Account, tmp_path: Path) -> None:
    made(account, public=True)
    connect(account, NAME, tmp_path)
    path = tmp_path / "kubeconfig"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    configuration = yaml.safe_load(path.read_text())
    assert configuration["users"][0]["user"]["token"].startswith("k8s-aws-v1.")
    assert configuration["clusters"][0]["cluster"]["server"].startswith("https://")


@pytest.mark.parametrize(
    ("words", "message", "command"),
    [
        (
            "error: You must be logged in to the server (Unauthorized)",
            "has no access entry in the cluster p5en-disaggregated",
            "aws eks create-access-entry --principal-arn arn:aws:sts",
        ),
        (
            'Error from server (Forbidden): namespaces is forbidden: User "x" cannot list resource',
            "has no permission to read the cluster",
            "AmazonEKSAdminViewPolicy --access-scope type=cluster",
        ),
    ],
)
def test_a_closed_door_comes_with_who_opens_it(
    platform: MakePlatform, cluster: RecordedCluster, words: str, message: str, command: str
) -> None:
    cluster.refusal = words
    first, *others = verify_cluster(platform(), cluster)
    assert (first.check, first.severity) == ("API server", "error")
    assert message in first.message
    assert command in (first.command or "")
    assert "AmazonEKSEditPolicy --access-scope type=namespace,namespaces=inference" in (first.command or "")
    assert [(each.check, each.severity) for each in others] == [(name, "unknown") for name in CLUSTER_CHECKS]


def test_a_session_of_a_role_is_let_in_by_the_role(
    platform: MakePlatform, account: Account, cluster: RecordedCluster
) -> None:
    arn = "arn:aws:sts::123456789012:assumed-role/Operators/me"
    answer = f"<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>{arn}</Arn></GetCallerIdentityResult>"
    Faults((200, f"{answer}</GetCallerIdentityResponse>".encode())).into(
        account.client("sts"), "GetCallerIdentity"
    )
    cluster.refusal = "Unauthorized"
    first, *_ = verify_cluster(platform(), cluster)
    role = "$(aws iam get-role --role-name Operators --query Role.Arn --output text)"
    assert f"--principal-arn {role} " in (first.command or "")


@pytest.mark.parametrize(
    ("access", "words"), [("private", "it is private"), ("publicAndPrivate", "it cannot be reached")]
)
def test_an_api_server_out_of_reach(
    platform: MakePlatform, account: Account, cluster: RecordedCluster, access: str, words: str
) -> None:
    public = access != "private"
    made(account, public=public)
    cluster.refusal = "Unable to connect to the server: dial tcp 10.0.1.7:443: i/o timeout"
    first, *_ = verify_cluster(platform(), cluster)
    assert first.severity == "error"
    assert first.message.startswith(words)
    assert "i/o timeout" in first.message
    assert public or "set endpointAccess: publicAndPrivate" in first.message


# What is asked


def test_every_check_speaks_and_a_refused_one_hides_no_other(
    platform: MakePlatform, cluster: RecordedCluster
) -> None:
    del cluster.objects["secrets"]
    cluster.objects["secrets"] = Refusing()
    seen = list(verify_cluster(platform(), cluster))
    by_check = {each.check: each for each in seen}
    assert by_check["charts"].severity == "unknown"
    assert "secrets is forbidden" in by_check["charts"].message
    assert [each.check for each in seen if each.severity == "error"] == [
        "tokens",
        "requests",
        "requests",
        "KV transfer",
    ], "nothing can be asked here, so nothing is received and moved"
    # There is no mirror, no llm-d, no observability and no front door.
    none = {"weights", "streamed weights", "inference pools", "picks", "metrics", "known callers"}
    assert set(by_check) == {"API server", *CLUSTER_CHECKS} - none
    assert by_check["routes"].severity == "unknown"
    assert "within the VPC" in by_check["routes"].message


class Refusing(list[KubernetesObject]):
    """A kind that one may not read."""

    def __iter__(self) -> Iterator[KubernetesObject]:
        raise KubectlFailed("Error from server (Forbidden): secrets is forbidden")


def test_nothing_is_asked_without_a_frontend(platform: MakePlatform, cluster: RecordedCluster) -> None:
    cluster.objects["pods"] = cluster.objects["pods"][2:]
    found = [each for each in verify_cluster(platform(), cluster) if each.check == "tokens"]
    assert [each.message for each in found] == ["qwen3-32b/main: no frontend is ready"]


def test_without_credentials_nothing_else_is_asked(
    platform: MakePlatform, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Faults(query_error("ExpiredToken", "expired", 403)).into(account.client("sts"), "GetCallerIdentity")
    monkeypatch.setattr(verification, "Account", lambda _: account)
    (only,) = verification.verify(platform().blueprint, "a.yaml")
    assert (only.check, only.severity) == ("credentials", "error")


def test_an_endpoint_is_asked_for_either_name(
    platform: MakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    blueprint = platform().blueprint
    [model] = blueprint.spec.models
    spec = blueprint.spec.model_copy(
        update={"models": [model.model_copy(update={"public_name": "Qwen/Qwen3-32B"})]}
    )
    checked: list[CheckedEndpoint] = []
    monkeypatch.setattr(endpoint_checks, "answers", checked.append)
    for name in (None, "qwen3-32b", "Qwen/Qwen3-32B"):
        verification.verify_endpoint(
            blueprint.model_copy(update={"spec": spec}), name, "http://127.0.0.1:1/v1"
        )
    assert [each.name for each in checked] == ["Qwen/Qwen3-32B", "qwen3-32b", "Qwen/Qwen3-32B"]
    assert {(each.label, each.base_url) for each in checked} == {("qwen3-32b", "http://127.0.0.1:1")}


@pytest.mark.parametrize(("name", "words"), [("nobody", "allowed are qwen3-32b")])
def test_an_endpoint_needs_a_model_of_the_blueprint(platform: MakePlatform, name: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        verification.verify_endpoint(platform().blueprint, name, "http://127.0.0.1:1")


# Templates


def test_releases_are_read_from_templates_and_charts_from_their_assets(tmp_path: Path) -> None:
    (tmp_path / "p-Platform.template.json").write_text(
        """{"Resources": {
        "A": {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties":
              {"Release": "karpenter", "Namespace": "kube-system", "Version": "1.14.1"}},
        "B": {"Type": "Custom::AWSCDK-EKS-HelmChart", "Properties":
              {"Release": "m", "Namespace": "inference", "ChartAssetURL":
               {"Fn::Sub": "s3://assets-${AWS::AccountId}/abc.zip"}}},
        "C": {"Type": "AWS::EKS::Addon", "Properties": {"AddonName": "coredns"}}}}"""
    )
    (tmp_path / "asset.abc").mkdir()
    (tmp_path / "asset.abc" / "Chart.yaml").write_text("name: dynamo-model\nversion: 0.1.0\n")
    assembly = read_assembly(tmp_path)
    assert {name: each.version for name, each in assembly.releases.items()} == {
        "karpenter": "1.14.1",
        "m": "0.1.0",
    }
    assert assembly.add_ons == {"coredns"}


# Ports to pods


class Program:
    """In place of kubectl: a program that has printed, and runs or has ended."""

    def __init__(self, text: str, *, stays: bool) -> None:
        reading, self._writing = os.pipe()
        self.stdout = os.fdopen(reading)
        os.write(self._writing, f"{text}\n".encode())
        self.runs = True
        if not stays:
            self.terminate()

    def start(self, *_arguments: str) -> subprocess.Popen[str]:
        return cast("subprocess.Popen[str]", self)

    def terminate(self) -> None:
        if self.runs:
            os.close(self._writing)
        self.runs = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        assert not self.runs, "it would wait for kubectl for ever"


def test_the_port_is_read_behind_other_lines_and_kubectl_is_ended() -> None:
    program = Program("a warning\nForwarding from 127.0.0.1:40123 -> 8000", stays=True)
    with forward_port(program, "inference", "frontend-0", 8000) as base_url:
        assert base_url == "http://127.0.0.1:40123"
    assert not program.runs


def test_kubectl_that_gives_up_says_why() -> None:
    program = Program("error: unable to forward port because pod is not running", stays=False)
    with pytest.raises(KubectlFailed, match="pod is not running"), forward_port(program, "n", "p", 1):
        pass


def test_kubectl_that_opens_nothing_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    moments = iter((0.0, 1.0, kubernetes.OPENING_SECONDS - 0.001))
    monkeypatch.setattr(kubernetes, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    program = Program("thinking", stays=True)
    with (
        pytest.raises(KubectlFailed, match="not opened within 30 s: thinking"),
        forward_port(program, "n", "p", 1),
    ):
        pass
    assert not program.runs
