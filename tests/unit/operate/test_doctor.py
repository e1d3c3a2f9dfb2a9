"""The examination of an account, with what can be wrong in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor import access_checks, capacity_checks, network_checks
from inference_blueprints.operate.doctor.doctor_checks import CHECKS, check_environment
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from tests.unit.operate.emulated_account import HEALTHY, EmulatedAccount
from tests.unit.operate.faults import Fault, Faults, json_error, query_error

Make = Callable[..., DoctorContext]
G = "L-DB2E81BA"
G_SPOT = "L-3819A6DF"
HUB_ARN = "arn:aws:secretsmanager:us-west-2:123456789012:secret:hub-AbCdEf"


def severities(findings: Iterator[CheckResult]) -> list[str]:
    return [finding.severity for finding in findings]


def only(findings: Iterator[CheckResult]) -> CheckResult:
    [finding] = findings
    return finding


# Credentials


def test_credentials_of_another_account_end_the_examination(make_context: Make) -> None:
    context = make_context(lambda spec: spec["environment"].update(account="999999999999"))
    finding = only(check_environment(context))
    assert finding.severity == "error"
    assert "account 123456789012, the blueprint names 999999999999" in finding.message


def test_without_credentials_nothing_else_is_asked(make_context: Make) -> None:
    context = make_context()
    error = query_error("ExpiredToken", "The security token included in the request is expired", 403)
    Faults(error).into(context.account.client("sts"), "GetCallerIdentity")
    finding = only(check_environment(context))
    assert (finding.check, finding.severity) == ("credentials", "error")
    assert "aws sso login" in (finding.command or "")


@pytest.mark.usefixtures("cdk")
def test_access_denied_to_one_check_hides_no_other(make_context: Make) -> None:
    denied = {"Error": {"Code": "AccessDeniedException", "Message": "you may not"}}
    services = ("ssm", "service-quotas", "ec2", "eks")
    account = EmulatedAccount({each: denied for each in HEALTHY if each[0] in services})
    found = {
        finding.check: finding for finding in check_environment(replace(make_context(), account=account))
    }
    asked = ("bootstrap", "zones", "add-ons", "node images", "VPC endpoints", "quotas", "Elastic IPs")
    assert [found[check].severity for check in (*asked, "offerings")] == ["unknown"] * 8
    assert "you may not" in found["quotas"].message
    assert found["weights"].severity == "ok"


@pytest.mark.usefixtures("cdk")
def test_an_account_out_of_reach_is_unknown_and_no_traceback(make_context: Make) -> None:
    context = replace(make_context(), account=EmulatedAccount({}))
    error = EndpointConnectionError(endpoint_url="https://ssm")

    def unreachable(**_call: object) -> None:
        raise error

    context.account.client("ssm").meta.events.register_first("before-call.ssm.GetParameter", unreachable)
    found = {finding.check: finding for finding in check_environment(context)}
    assert found["bootstrap"].severity == "unknown"


@pytest.mark.usefixtures("cdk")
def test_every_check_names_its_findings_as_the_table_does(make_context: Make) -> None:
    context = replace(make_context(), account=EmulatedAccount({}))
    assert {finding.check for finding in check_environment(context)} <= {"credentials", *CHECKS}


# Bootstrap


@pytest.mark.parametrize(
    ("version", "severity"), [(None, "error"), ("5", "error"), ("6", "ok"), ("30", "ok")]
)
def test_the_bootstrap_has_to_be_there_and_recent(
    make_context: Make, version: str | None, severity: str
) -> None:
    context = make_context()
    if version:
        context.account.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value=version, Type="String"
        )
    finding = only(access_checks.bootstrap(context))
    assert finding.severity == severity
    assert finding.command == (None if severity == "ok" else "blueprints bootstrap a.yaml")


# Quotas


def grant(account: Account, *answers: float | Fault) -> Faults:
    """Let the account's quotas have these values, in the order in which they are asked for."""
    faults = [
        answer if isinstance(answer, tuple) else (200, json.dumps({"Quota": {"Value": answer}}).encode())
        for answer in answers
    ]
    return Faults(*faults).into(account.client("service-quotas"), "GetServiceQuota")


def test_quotas_are_compared_after_throttling(make_context: Make, account: Account) -> None:
    throttled = json_error("TooManyRequestsException", "slow down", 429)
    faults = grant(account, throttled, 640.0, 16.0)
    assert severities(capacity_checks.quotas(make_context())) == ["ok", "ok"]
    assert faults.calls == 3


def test_a_quota_of_zero_breaks_the_pool_and_comes_with_the_request(
    make_context: Make, account: Account
) -> None:
    grant(account, 640.0, 0.0)
    finding = list(capacity_checks.quotas(make_context()))[1]
    assert finding.severity == "error"
    # Two g6e.2xlarge of eight vCPUs.
    assert "G and VT instances: 0 vCPUs are granted, 16 are needed, l40s can grow to 16" in finding.message
    assert f"--quota-code {G} --desired-value 16 --region us-west-2" in (finding.command or "")


def test_a_quota_for_the_replicas_but_not_for_the_maximum_is_a_warning(
    make_context: Make, account: Account
) -> None:
    grant(account, 640.0, 16.0)
    finding = list(
        capacity_checks.quotas(make_context(lambda spec: spec["pools"][0]["nodes"].update(max=3)))
    )[1]
    assert (finding.severity, "--desired-value 24" in (finding.command or "")) == ("warning", True)


def test_a_quota_that_aws_does_not_know_is_unknown_and_not_zero(make_context: Make) -> None:
    assert severities(capacity_checks.quotas(make_context())) == ["unknown", "unknown"]


def test_a_spot_pool_is_compared_with_the_quota_of_spot(make_context: Make, account: Account) -> None:
    grant(account, 640.0, 0.0)
    context = make_context(lambda spec: spec["pools"][0].update(purchase={"spot": {}}))
    finding = next(finding for finding in capacity_checks.quotas(context) if finding.severity == "error")
    assert f"--quota-code {G_SPOT} --desired-value 16" in (finding.command or "")


# Offerings


def offered_in(account: Account, *zones: str) -> None:
    items = "".join(
        f"<item><instanceType>g6e.2xlarge</instanceType><locationType>availability-zone</locationType>"
        f"<location>{zone}</location></item>"
        for zone in zones
    )
    body = (
        "<DescribeInstanceTypeOfferingsResponse><instanceTypeOfferingSet>"
        f"{items}</instanceTypeOfferingSet></DescribeInstanceTypeOfferingsResponse>"
    )
    Faults((200, body.encode())).into(account.client("ec2"), "DescribeInstanceTypeOfferings")


@pytest.mark.parametrize(
    ("zones", "severity"), [((), "error"), (("us-west-2d",), "error"), (("us-west-2b", "us-west-2d"), "ok")]
)
def test_a_pool_needs_a_zone_that_sells_its_type(
    make_context: Make, account: Account, zones: tuple[str, ...], severity: str
) -> None:
    offered_in(account, *zones)
    finding = only(capacity_checks.offerings(make_context()))
    assert finding.severity == severity
    assert "zones us-west-2a, us-west-2b, us-west-2c" in finding.message


def test_a_type_that_never_starts_is_doubtful(make_context: Make, account: Account) -> None:
    offered_in(account, "us-west-2a")
    context = make_context(lambda spec: spec["pools"][0].update(instanceTypes=["g6e.2xlarge", "g6e.4xlarge"]))
    finding = only(capacity_checks.offerings(context))
    assert finding.severity == "warning"
    assert "g6e.4xlarge in none" in finding.message


# Weights


def with_token(spec: dict[str, Any]) -> None:
    spec["models"][0]["weights"]["tokenSecretArn"] = HUB_ARN


def test_a_token_s_secret_has_to_exist(make_context: Make) -> None:
    finding = only(access_checks.weights(make_context(with_token)))
    assert finding.severity == "error"
    assert "aws secretsmanager create-secret" in (finding.command or "")


@pytest.mark.parametrize("state", ["deleted", "empty", "good"])
def test_a_token_s_secret_has_to_hold_something(make_context: Make, account: Account, state: str) -> None:
    secrets = account.client("secretsmanager")
    value = {} if state == "empty" else {"SecretString": "hf_secret"}
    arn = secrets.create_secret(Name="hub", **value)["ARN"]
    if state == "deleted":
        secrets.delete_secret(SecretId=arn)
    context = make_context(lambda spec: spec["models"][0]["weights"].update(tokenSecretArn=arn))
    finding = only(access_checks.weights(context))
    assert finding.severity == ("ok" if state == "good" else "error")
    assert "hf_secret" not in str(finding)


@pytest.mark.parametrize("state", ["no bucket", "empty", "neighbour", "good"])
def test_weights_in_s3_have_to_be_there(make_context: Make, account: Account, state: str) -> None:
    """Listed without a slash at its end, the prefix would also find the files of its neighbour."""
    s3 = account.client("s3")
    if state != "no bucket":
        s3.create_bucket(
            Bucket="models-of-acme", CreateBucketConfiguration={"LocationConstraint": "us-west-2"}
        )
    if state == "good":
        s3.put_object(Bucket="models-of-acme", Key="qwen3/config.json", Body=b"{}")
    if state == "neighbour":
        s3.put_object(Bucket="models-of-acme", Key="qwen3-32b/config.json", Body=b"{}")
    source = {"s3": "s3://models-of-acme/qwen3", "catalog": "Qwen/Qwen3-8B"}
    finding = only(access_checks.weights(make_context(lambda spec: spec["models"][0].update(weights=source))))
    assert finding.severity == ("ok" if state == "good" else "error")


# Network


def in_vpc(account: Account, *zones: str, names: bool = True) -> Callable[[dict[str, Any]], None]:
    """Make a VPC with a subnet in each zone, and return the change of a blueprint that names them."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": names})
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.7.{at * 32}.0/19", AvailabilityZone=zone)["Subnet"][
            "SubnetId"
        ]
        for at, zone in enumerate(zones)
    ]

    def change(spec: dict[str, Any]) -> None:
        spec["environment"]["availabilityZones"] = ["us-west-2a", "us-west-2b"]
        existing = {"vpcId": vpc, "vpcCidr": "10.7.0.0/16", "privateSubnetIds": subnets}
        spec["network"] = {"existing": existing}

    return change


def test_a_network_as_the_blueprint_says(make_context: Make, account: Account) -> None:
    change = in_vpc(account, "us-west-2a", "us-west-2b")
    assert severities(network_checks.existing_network(make_context(change))) == ["ok"]


def test_subnets_in_another_order_of_zones(make_context: Make, account: Account) -> None:
    change = in_vpc(account, "us-west-2b", "us-west-2a")
    findings = list(network_checks.existing_network(make_context(change)))
    assert [finding.severity for finding in findings] == ["error", "error"]
    assert "is in us-west-2b, not in us-west-2a" in findings[0].message


def test_names_that_are_off_come_with_the_command(make_context: Make, account: Account) -> None:
    change = in_vpc(account, "us-west-2a", "us-west-2b", names=False)
    finding = only(network_checks.existing_network(make_context(change)))
    assert "--enable-dns-hostnames" in (finding.command or "")


def test_another_range_and_ids_that_do_not_exist(make_context: Make, account: Account) -> None:
    change = in_vpc(account, "us-west-2a", "us-west-2b")

    def other_range(spec: dict[str, Any]) -> None:
        change(spec)
        spec["network"]["existing"]["vpcCidr"] = "10.8.0.0/16"

    def no_subnet(spec: dict[str, Any]) -> None:
        change(spec)
        spec["network"]["existing"]["privateSubnetIds"][1] = "subnet-0123456789abcdef0"

    assert "correct vpcCidr" in only(network_checks.existing_network(make_context(other_range))).message
    assert "does not exist; use ids" in only(network_checks.existing_network(make_context(no_subnet))).message


# Certificate


def secured(arn: str, domain: str = "models.example.com") -> Callable[[dict[str, Any]], None]:
    return lambda spec: spec.update(network={"certificateArn": arn, "domain": domain})


def test_a_certificate_that_waits_for_validation(make_context: Make, account: Account) -> None:
    acm = account.client("acm")
    arn = acm.request_certificate(DomainName="*.models.example.com", ValidationMethod="DNS")["CertificateArn"]
    Faults(
        (
            200,
            json.dumps(
                {"Certificate": {"Status": "PENDING_VALIDATION", "DomainName": "*.models.example.com"}}
            ).encode(),
        )
    ).into(acm, "DescribeCertificate")
    finding = only(network_checks.certificate(make_context(secured(arn))))
    assert finding.severity == "error"
    assert "PENDING_VALIDATION" in finding.message


@pytest.mark.parametrize(
    ("name", "severity"),
    {
        "*.models.example.com": "ok",
        "qwen3-8b.models.example.com": "ok",
        "*.example.com": "error",
        "models.example.com": "error",
    }.items(),
)
def test_a_certificate_has_to_cover_every_model(
    make_context: Make, account: Account, name: str, severity: str
) -> None:
    answer = {"Certificate": {"Status": "ISSUED", "DomainName": name, "SubjectAlternativeNames": [name]}}
    acm = account.client("acm")
    Faults((200, json.dumps(answer).encode())).into(acm, "DescribeCertificate")
    arn = "arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"
    assert only(network_checks.certificate(make_context(secured(arn)))).severity == severity


def test_a_certificate_that_does_not_exist(make_context: Make) -> None:
    arn = "arn:aws:acm:us-west-2:123456789012:certificate/12345678-1234-1234-1234-123456789012"
    finding = only(network_checks.certificate(make_context(secured(arn))))
    assert finding.severity == "error"
    assert "request-certificate" in (finding.command or "")
