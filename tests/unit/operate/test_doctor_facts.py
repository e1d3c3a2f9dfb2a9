"""Every check of `doctor` finds its fact wrong: a healthy account, and then the same with one other answer.

A new check without an entry in `WRONG` turns this red. The details of each check have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from inference_blueprints import tools
from inference_blueprints.operate.check_results import CheckResult, Severity
from inference_blueprints.operate.doctor import caller_checks
from inference_blueprints.operate.doctor.doctor_checks import CHECKS, check_environment
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_contracts.errors import UserError
from tests.unit.operate.conftest import NOW
from tests.unit.operate.emulated_account import (
    BLOCK,
    CERTIFICATE,
    SECRET,
    SUBNETS,
    VPC,
    ZONES,
    Answers,
    EmulatedAccount,
    certificate,
    endpoint_services,
    failed,
    key_policy,
    offerings,
    reservation,
    subnets,
)
from tests.unit.operate.test_doctor_account import BATCH
from tests.unit.stand_in_programs import Printed, StandInPrograms

pytestmark = pytest.mark.usefixtures("cdk")

Make = Callable[..., DoctorContext]
Change = Callable[[dict[str, Any]], object]


@dataclass(frozen=True)
class WrongFact:
    """A fact that differs from the blueprint."""

    answers: Answers
    """What AWS answers instead."""
    words: str
    """Part of the line that names it."""
    severity: Severity = "error"
    spec: Change = field(default=lambda _spec: None)
    """Change of the blueprint that makes the fact matter."""
    now: datetime = NOW
    """Time of the check, if it is the wrong fact."""
    cdk: str = ""
    """What the CDK command line prints instead of its version."""
    offline: bool = False
    """Whether key sets of issuers cannot be fetched."""
    elsewhere: bool = False
    """Whether the machine does not run the programs of this library, and has no others."""


def of_account(spec: dict[str, Any]) -> None:
    spec["environment"]["account"] = "123456789012"


def with_batch(spec: dict[str, Any]) -> None:
    spec.update(BATCH)


def on_spot(spec: dict[str, Any]) -> None:
    spec["pools"][0]["purchase"] = {"spot": {}}


def on_block(spec: dict[str, Any]) -> None:
    spec["pools"][0].update(
        instanceTypes=["p5.48xlarge"],
        purchase={"capacityBlock": {"id": BLOCK, "ends": "2026-12-01T11:30:00Z"}},
        nodes={"max": 2},
        availabilityZone=ZONES[1],
    )


def with_token(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"]["tokenSecretArn"] = SECRET


def in_vpc(spec: dict[str, Any]) -> None:
    spec["environment"]["availabilityZones"] = ZONES[:2]
    spec["network"] = {"existing": {"vpcId": VPC, "vpcCidr": "10.7.0.0/16", "privateSubnetIds": SUBNETS}}


def with_topic(spec: dict[str, Any]) -> None:
    topic = "arn:aws:sns:us-west-2:123456789012:people"
    spec.update(observability={"alarms": {"topicArn": topic}}, gpuHealth={})


def with_certificate(spec: dict[str, Any]) -> None:
    spec["network"] = {"certificateArn": CERTIFICATE, "domain": "models.example.com"}


ISSUER = "https://0a1b2c3d.tokens.sts.global.api.aws"
_KEY_SET = {"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "first", "alg": "EdDSA", "x": "A" * 43}]}


def _with_door(spec: dict[str, Any], callers: dict[str, Any], account: str = "123456789012") -> None:
    team = {"name": "ads", "monthlyBudgetUsd": 1, "principals": [f"arn:aws:iam::{account}:role/Ads"]}
    with_certificate(spec)
    spec["models"][0]["rates"] = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.4}
    spec.update(teams=[team], frontDoor={"identity": {"iam": callers}})


def with_sts(spec: dict[str, Any]) -> None:
    _with_door(spec, {"accounts": [{"issuer": ISSUER}]})


def with_stated_keys(spec: dict[str, Any]) -> None:
    _with_door(spec, {"accounts": [{"issuer": ISSUER, "keys": _KEY_SET}]})


@pytest.fixture(autouse=True)
def published(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Key sets that issuers publish, by address."""
    found = {f"{ISSUER}/.well-known/jwks.json": _KEY_SET}

    monkeypatch.setattr(caller_checks, "fetch", lambda url: found[url] if found else _unreachable(url))
    return found


def _unreachable(url: str) -> Mapping[str, Any]:
    raise UserError(f"{url} cannot be read from this machine: no network")


_FEDERATION = ("iam", "GetOutboundWebIdentityFederationInfo")
_QUOTA = ("service-quotas", "GetServiceQuota")
_SERVICES = ("ec2", "DescribeVpcEndpointServices")
_BLOCKS = ("ec2", "DescribeCapacityReservations")
_POLICY = ("kms", "GetKeyPolicy")
#: Wrong facts by the name of the check that finds them.
WRONG: Mapping[str, tuple[WrongFact, ...]] = {
    "credentials": (
        WrongFact(
            {("sts", "GetCallerIdentity"): {"Account": "999999999999"}},
            "the blueprint names",
            spec=of_account,
        ),
    ),
    "CDK command line": (WrongFact({}, "got 1.0.0, ", cdk="1.0.0 (build 0)"),),
    "kubectl": (WrongFact({}, "kubectl is not on the PATH", "warning", elsewhere=True),),
    "bootstrap": (
        WrongFact({("ssm", "GetParameter"): failed("ParameterNotFound")}, "is not bootstrapped"),
        WrongFact({("ssm", "GetParameter"): {"Parameter": {"Value": "5"}}}, "got version 5"),
    ),
    "zones": (
        WrongFact(
            {
                ("ec2", "DescribeAvailabilityZones"): {
                    "AvailabilityZones": [{"ZoneName": zone, "ZoneId": "use1-az3"} for zone in ZONES]
                }
            },
            "where EKS accepts no control plane",
        ),
    ),
    "Kubernetes": (
        WrongFact({}, "EKS has not supported 1.35 since", now=datetime(2028, 6, 1, tzinfo=UTC)),
        WrongFact({}, "standard support of 1.35 ended on", now=datetime(2027, 6, 1, tzinfo=UTC)),
        WrongFact({}, "standard support of 1.35 ends on", "warning", now=datetime(2027, 3, 1, tzinfo=UTC)),
    ),
    "add-ons": (
        WrongFact(
            {("eks", "DescribeAddonVersions"): {"addons": []}}, "coredns has no version for Kubernetes 1.35"
        ),
    ),
    "node images": (
        WrongFact(
            {
                ("ssm", "GetParameters"): {
                    "InvalidParameters": [
                        "/aws/service/bottlerocket/aws-k8s-1.35-nvidia/x86_64/1.66.0/image_id"
                    ]
                }
            },
            "so no node of l40s starts",
        ),
    ),
    "VPC endpoints": (
        WrongFact(
            {_SERVICES: endpoint_services(ZONES, without="eks-auth")}, "eks-auth is not offered in us-"
        ),
        WrongFact({_SERVICES: endpoint_services(ZONES[:2])}, "is not offered in us-west-2c"),
        WrongFact(
            {_SERVICES: endpoint_services(ZONES, without="execute-api")},
            "needs it for the batch API",
            spec=with_batch,
        ),
    ),
    "quotas": (WrongFact({_QUOTA: {"Quota": {"Value": 0.0}}}, "0 vCPUs are granted"),),
    "Elastic IPs": (WrongFact({_QUOTA: {"Quota": {"Value": 2.0}}}, "0 of 2 are in use"),),
    "API logging": (WrongFact({("apigateway", "GetAccount"): {}}, "has no role", spec=with_batch),),
    "function calls": (
        WrongFact(
            {
                ("lambda", "GetAccountSettings"): {
                    "AccountLimit": {"ConcurrentExecutions": 10, "UnreservedConcurrentExecutions": 10}
                }
            },
            "the account runs 10 calls",
            spec=with_batch,
        ),
    ),
    "offerings": (
        WrongFact({("ec2", "DescribeInstanceTypeOfferings"): offerings(ZONES[3])}, "g6e.2xlarge in none"),
    ),
    "Spot role": (WrongFact({("iam", "ListRoles"): {"Roles": []}}, "the account has no role", spec=on_spot),),
    "reservations": (
        WrongFact({_BLOCKS: {"CapacityReservations": []}}, "does not exist in this account", spec=on_block),
        WrongFact(
            {_BLOCKS: reservation(AvailabilityZone=ZONES[3])}, "the platform has subnets in", spec=on_block
        ),
        WrongFact({_BLOCKS: reservation(State="expired")}, "is expired", spec=on_block),
        WrongFact(
            {_BLOCKS: reservation(EndDate=datetime(2026, 12, 8, 11, 30, tzinfo=UTC))},
            "correct 'ends'",
            "warning",
            spec=on_block,
        ),
    ),
    "weights": (
        WrongFact(
            {("secretsmanager", "DescribeSecret"): failed("ResourceNotFoundException")},
            "does not exist",
            spec=with_token,
        ),
    ),
    "network": (
        WrongFact(
            {("ec2", "DescribeVpcs"): failed("InvalidVpcID.NotFound")}, "use ids that exist", spec=in_vpc
        ),
        WrongFact(
            {("ec2", "DescribeSubnets"): subnets(ZONES[1], ZONES[0])}, "correct the order", spec=in_vpc
        ),
    ),
    "subnet addresses": (
        WrongFact(
            {("ec2", "DescribeSubnets"): subnets(*ZONES[:2], free=5)},
            "10 addresses are free in 2 subnets",
            "warning",
            spec=in_vpc,
        ),
    ),
    "private DNS": (
        WrongFact(
            {
                ("route53", "ListHostedZonesByVPC"): {
                    "HostedZoneSummaries": [
                        {
                            "HostedZoneId": "Z0123456789",
                            "Name": "quickstart.internal.",
                            "Owner": {"OwningAccount": "123456789012"},
                        }
                    ],
                    "MaxItems": "100",
                }
            },
            "already has a private zone quickstart.internal",
            spec=in_vpc,
        ),
    ),
    "alarm topic": (
        WrongFact(
            {("sns", "GetTopicAttributes"): failed("NotFound")}, "people does not exist", spec=with_topic
        ),
        WrongFact(
            {("sns", "GetTopicAttributes"): {"Attributes": {"KmsMasterKeyId": "alias/aws/sns"}}},
            "with which CloudWatch cannot publish",
            spec=with_topic,
        ),
        WrongFact({_POLICY: key_policy({"AWS": "*"})}, "refuses CloudWatch's alarms; allow", spec=with_topic),
        # As in the account whose messages of GPU health failed each minute.
        WrongFact(
            {_POLICY: key_policy({"Service": "cloudwatch.amazonaws.com"})},
            "refuses the controllers' messages; allow",
            spec=with_topic,
        ),
    ),
    "certificate": (
        WrongFact(
            {("acm", "DescribeCertificate"): certificate(Status="EXPIRED")},
            "it is EXPIRED",
            spec=with_certificate,
        ),
    ),
    "IAM callers": (
        WrongFact(
            {_FEDERATION: failed("FeatureDisabled")},
            "federation is off in account 123456789012",
            spec=with_sts,
        ),
        WrongFact(
            {_FEDERATION: {"IssuerIdentifier": ISSUER, "JwtVendingEnabled": False}},
            "federation is off",
            spec=with_sts,
        ),
        WrongFact(
            {_FEDERATION: {"IssuerIdentifier": f"{ISSUER}.other", "JwtVendingEnabled": True}},
            "which spec.frontDoor.identity.iam.accounts does not have",
            spec=with_sts,
        ),
    ),
    "key sets": (
        WrongFact({}, "let its network reach it, or state 'keys'", "warning", spec=with_sts, offline=True),
    ),
}
CASES = [(check, fact) for check, facts in WRONG.items() for fact in facts]
each_fact = pytest.mark.parametrize(
    ("check", "fact"), CASES, ids=[f"{check}: {fact.words}" for check, fact in CASES]
)


def found(
    make_context: Make, check: str, spec: Change, wrong: Answers, now: datetime = NOW
) -> Iterator[CheckResult]:
    """Yield what one check finds in an account."""
    context = replace(make_context(spec), account=EmulatedAccount(wrong), now=now)
    results = check_environment(context) if check == "credentials" else CHECKS[check](context)
    return (each for each in results if each.check == check)


def test_every_check_has_a_fact_that_turns_it() -> None:
    assert WRONG.keys() == {"credentials", *CHECKS}


@each_fact
def test_a_healthy_account_has_a_line_and_no_other(make_context: Make, check: str, fact: WrongFact) -> None:
    assert {each.severity for each in found(make_context, check, fact.spec, {})} == {"ok"}


@each_fact
def test_a_wrong_fact_has_its_line_with_a_remedy(
    make_context: Make, cdk: StandInPrograms, monkeypatch: pytest.MonkeyPatch, check: str, fact: WrongFact
) -> None:
    if fact.offline:
        monkeypatch.setattr(caller_checks, "fetch", _unreachable)
    if fact.elsewhere:
        monkeypatch.setattr(tools, "layer_runs_here", lambda: False)
        monkeypatch.setenv("PATH", "")
    if fact.cdk:
        cdk.add("cdk", lambda _: Printed(fact.cdk))
    results = [
        each
        for each in found(make_context, check, fact.spec, fact.answers, fact.now)
        if each.severity != "ok"
    ]
    assert {each.severity for each in results} == {fact.severity}
    assert any(fact.words in each.message for each in results)
    assert all(each.command or "; " in each.message for each in results), "each line says what to do"


def test_an_add_on_of_the_lock_has_to_run_on_the_cluster_s_kubernetes(make_context: Make) -> None:
    context = replace(make_context(), account=EmulatedAccount({}))
    releases = context.blueprint.releases
    pinned = replace(releases, add_ons={**releases.add_ons, "coredns": "v1.11.1-eksbuild.4"})
    context = replace(context, blueprint=context.blueprint.with_releases(pinned))
    (finding,) = CHECKS["add-ons"](context)
    assert finding.severity == "error"
    assert "coredns v1.11.1-eksbuild.4 of the lock does not run on Kubernetes 1.35" in finding.message


def test_new_keys_of_an_issuer_are_found_before_tokens_are_refused(
    make_context: Make, published: dict[str, Any]
) -> None:
    """An issuer that signs with a key which the file does not have: every token is refused."""
    [current] = found(make_context, "key sets", with_stated_keys, {})
    assert (current.severity, current.message) == ("ok", f"{ISSUER}: the file has its 1 keys")
    (url,) = published
    published[url] = {"keys": [*_KEY_SET["keys"], {"kty": "OKP", "kid": "second"}]}
    [outdated] = found(make_context, "key sets", with_stated_keys, {})
    assert (outdated.severity, outdated.command) == ("error", f"curl {url}")
    assert "new keys that the file does not have: second" in outdated.message
    published.clear()
    [unknown] = found(make_context, "key sets", with_stated_keys, {})
    assert unknown.severity == "unknown"


def test_issuers_of_other_accounts_are_counted(make_context: Make) -> None:
    def change(spec: dict[str, Any]) -> None:
        _with_door(spec, {"accounts": [{"issuer": ISSUER}]}, account="999999999999")

    [fine, missing] = found(make_context, "IAM callers", change, {})
    assert (fine.severity, missing.severity) == ("ok", "warning")
    assert "teams have principals in 999999999999, and 'accounts' has 1 issuers" in missing.message


@pytest.mark.parametrize("document", [{}, {"keys": []}, {"keys": ["x"]}, {"keys": {}}])
def test_what_is_no_key_set(document: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="has no 'keys'"):
        caller_checks.key_ids(document)
