"""Reserved capacity as EC2 describes it, with each fact that Karpenter would trip over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor import capacity_checks
from inference_blueprints.operate.doctor.doctor_context import DoctorContext

Make = Callable[..., DoctorContext]
BLOCK = "cr-0a1b2c3d4e5f60718"
#: A Capacity Block that fits the pool below, in the words of the Amazon EC2 API, CapacityReservation.
FITTING: Mapping[str, Any] = {
    "CapacityReservationId": BLOCK,
    "ReservationType": "capacity-block",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": "us-west-2b",
    "State": "active",
    "TotalInstanceCount": 2,
    "StartDate": datetime(2026, 11, 20, 11, 30, tzinfo=UTC),
    "EndDate": datetime(2026, 12, 1, 11, 30, tzinfo=UTC),
}


@pytest.fixture
def ec2(account: Account) -> Iterator[Stubber]:
    """Stand for EC2, because moto has no reservations. The stub compares keys and types with botocore's."""
    with Stubber(account.client("ec2")) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def describe(ec2: Stubber, *reservations: Mapping[str, Any]) -> None:
    """Let EC2 describe these reservations."""
    ec2.add_response("describe_capacity_reservations", {"CapacityReservations": [*reservations]})


def on_block(
    selection: Mapping[str, Any], minimum: int = 0, maximum: int = 2
) -> Callable[[dict[str, Any]], None]:
    """Return the change of a blueprint that gives its pool a Capacity Block of two P5 in one zone."""

    def change(spec: dict[str, Any]) -> None:
        spec["pools"][0].update(
            instanceTypes=["p5.48xlarge"],
            purchase={"capacityBlock": dict(selection)},
            nodes={"min": minimum, "max": maximum},
            availabilityZone="us-west-2b",
        )

    return change


def check(make_context: Make, selection: Mapping[str, Any] | None = None) -> list[CheckResult]:
    """Check the pool against EC2's answer."""
    return list(capacity_checks.reservations(make_context(on_block(selection or {"id": BLOCK}))))


def test_a_block_as_the_blueprint_says(make_context: Make, ec2: Stubber) -> None:
    describe(ec2, FITTING)
    (finding,) = check(make_context)
    assert finding.severity == "ok"
    assert "has 2 p5.48xlarge in us-west-2b until 2026-12-01 11:30 UTC" in finding.message


@pytest.mark.parametrize(
    ("fact", "severity", "words"),
    [
        ({"ReservationType": "default"}, "error", "has the type default, not capacity-block; use purchase"),
        ({"InstanceType": "p5e.48xlarge"}, "error", "is for p5e.48xlarge, the pool has p5.48xlarge"),
        ({"AvailabilityZone": "us-west-2d"}, "error", "add us-west-2d to environment.availabilityZones"),
        ({"AvailabilityZone": "us-west-2a"}, "error", "set availabilityZone: us-west-2a"),
        ({"State": "payment-failed"}, "error", "is payment-failed; buy another"),
        ({"State": "cancelled"}, "error", "is cancelled; buy another"),
        ({"EndDate": datetime(2026, 11, 22, 11, 30, tzinfo=UTC)}, "error", "ended at 2026-11-22 11:30 UTC"),
        ({"TotalInstanceCount": 1}, "warning", "reserve more, or lower nodes.max"),
        ({"TotalInstanceCount": 0}, "error", "reserve more, or lower replicas and nodes"),
        (
            {"State": "scheduled", "StartDate": datetime(2026, 11, 28, 11, 30, tzinfo=UTC)},
            "warning",
            "from 2026-11-28 11:30 UTC until 2026-12-01 11:30 UTC (scheduled)",
        ),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_each_fact_that_differs_has_a_line(
    make_context: Make, ec2: Stubber, fact: dict[str, Any], severity: str, words: str
) -> None:
    describe(ec2, {**FITTING, **fact})
    (finding,) = check(make_context)
    assert (finding.check, finding.severity) == ("reservations", severity)
    assert words in finding.message
    command = finding.command or ""
    assert command.endswith(f"--capacity-reservation-ids {BLOCK} --region us-west-2")


def test_nodes_that_the_pool_keeps_must_be_reserved(make_context: Make, ec2: Stubber) -> None:
    """Counting only the nodes that workers fill turns this red: it would be a warning."""
    describe(ec2, FITTING)
    (finding,) = capacity_checks.reservations(make_context(on_block({"id": BLOCK}, 3, 4)))
    assert finding.severity == "error"
    assert "its workers need 3 nodes, it may have 4; reserve more, or lower replicas" in finding.message


@pytest.mark.parametrize(
    ("dates", "words"),
    [
        ({"starts": "2026-11-20T11:30:00Z", "ends": "2026-12-01T11:30:00Z"}, None),
        ({"starts": "2026-11-21T11:30:00Z"}, "starts at 2026-11-20 11:30 UTC; correct 'starts'"),
        ({"ends": "2026-12-08T11:30:00Z"}, "ends at 2026-12-01 11:30 UTC; correct 'ends'"),
    ],
)
def test_the_dates_of_the_blueprint_are_those_of_the_block(
    make_context: Make, ec2: Stubber, dates: dict[str, str], words: str | None
) -> None:
    describe(ec2, FITTING)
    *others, finding = check(make_context, {"id": BLOCK, **dates})
    assert finding.severity == "ok"
    assert len(others) == bool(words)
    assert all(each.severity == "warning" and words in each.message for each in others if words)


def test_a_block_that_does_not_exist(make_context: Make, ec2: Stubber) -> None:
    ec2.add_client_error("describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")
    (finding,) = check(make_context)
    assert finding.severity == "error"
    assert f"{BLOCK} does not exist in this account and region" in finding.message


def test_tags_that_nothing_has(make_context: Make, ec2: Stubber) -> None:
    filters = [{"Name": "tag-key", "Values": ["purpose"]}, {"Name": "tag:team", "Values": ["ads"]}]
    answer: dict[str, Any] = {"CapacityReservations": []}
    ec2.add_response("describe_capacity_reservations", answer, {"Filters": filters})
    (finding,) = check(make_context, {"tags": {"team": "ads", "purpose": "*"}})
    assert finding.severity == "error"
    assert "no reservation with the tags purpose=*, team=ads exists" in finding.message
    assert "'Name=tag-key,Values=purpose' 'Name=tag:team,Values=ads'" in (finding.command or "")


def test_tags_may_select_a_block_that_has_ended_besides_one_that_runs(
    make_context: Make, ec2: Stubber
) -> None:
    describe(ec2, {**FITTING, "CapacityReservationId": "cr-0123456789abcdef0", "State": "expired"}, FITTING)
    findings = check(make_context, {"tags": {"team": "ads"}})
    assert [finding.severity for finding in findings] == ["warning", "ok"]
    assert "cr-0123456789abcdef0 is expired" in findings[0].message


def test_a_pool_without_a_reservation_is_not_asked_about(make_context: Make) -> None:
    assert list(capacity_checks.reservations(make_context())) == []
