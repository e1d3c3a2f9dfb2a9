"""Real-time demand is what is in flight, less batch's part."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import numpy
import pytest
from capacity_shift.cell_reader import DemandReader

from inference_contracts import batch_names
from operations.operations_errors import MetricsError
from tests.runtime.capacity_shift.shift_platform import MODEL, NOW, PLATFORM, Series, shifted_workers

pytestmark = pytest.mark.usefixtures("aws_in_process")
ONE, TWO = shifted_workers("one"), shifted_workers("two")


def batch_in_flight(value: float, *, at: float) -> None:
    """What one worker writes once a minute."""
    dimensions = {batch_names.PLATFORM_DIMENSION: PLATFORM, batch_names.MODEL_DIMENSION: MODEL}
    boto3.client("cloudwatch").put_metric_data(
        Namespace=batch_names.METRIC_NAMESPACE,
        MetricData=[
            {
                "MetricName": batch_names.IN_FLIGHT,
                "Dimensions": [{"Name": key, "Value": each} for key, each in dimensions.items()],
                "Timestamp": datetime.fromtimestamp(at, UTC),
                "Value": value,
            }
        ],
    )


def reader(series: Series) -> DemandReader:
    return DemandReader(PLATFORM, (ONE, TWO), series, boto3.client("cloudwatch"))


def test_demand_is_by_minute_and_ends_now() -> None:
    series = Series({ONE.release: 20.0, TWO.release: 5.0})
    found = reader(series).histories(NOW)
    assert found[ONE.name].end == NOW
    numpy.testing.assert_array_equal(found[TWO.name].values[-60:], 5.0)
    assert len(found[ONE.name].values) == 2 * 1440 + 1


def test_batch_is_taken_off_each_release_by_its_part() -> None:
    for minute in range(5):
        batch_in_flight(4.0, at=NOW - 60 * minute - 30)
        batch_in_flight(1.0, at=NOW - 60 * minute - 20)
    found = reader(Series({ONE.release: 20.0, TWO.release: 5.0})).histories(NOW)
    assert found[ONE.name].values[-1] == pytest.approx(20.0 - 5.0 * 20 / 25)
    assert found[TWO.name].values[-1] == pytest.approx(5.0 - 5.0 * 5 / 25)
    assert found[ONE.name].values[-30] == 20.0, "there was no batch then"


def test_a_late_line_of_a_batch_worker_is_no_demand_of_people() -> None:
    batch_in_flight(15.0, at=NOW - 100)
    found = reader(Series({ONE.release: 20.0})).histories(NOW)
    assert found[ONE.name].values[-1] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("serving", "expected"),
    [
        # Batch is on a deployment of its own that the shift does not move.
        (("night",), (500.0, 20.0)),
        (("one", "night"), (500.0 - 800.0 * 500 / 1300, 20.0)),
    ],
)
def test_batch_is_taken_off_no_release_that_serves_no_queue(
    serving: tuple[str, ...], expected: tuple[float, float]
) -> None:
    """Red if requests of a queue on other deployments lower real time's demand: floors fell at the peak."""
    night = shifted_workers("night").release
    series = Series({ONE.release: 500.0, TWO.release: 20.0, night: 800.0})
    releases = {MODEL: tuple(shifted_workers(each).release for each in serving)}
    batch_in_flight(800.0, at=NOW - 30)
    found = DemandReader(PLATFORM, (ONE, TWO), series, boto3.client("cloudwatch"), releases).histories(NOW)
    assert (found[ONE.name].values[-1], found[TWO.name].values[-1]) == pytest.approx(expected)


def test_a_run_reads_only_what_is_new() -> None:
    series = Series({ONE.release: 20.0})
    demand = reader(series)
    demand.histories(NOW)
    assert len(series.asked) == 14, "a query has at most a day"
    series.asked.clear()
    demand.histories(NOW + 60)
    assert series.asked == [(NOW + 120 - 960, NOW + 60)]


def test_a_failure_keeps_what_was_read_and_its_end() -> None:
    series = Series({ONE.release: 20.0})
    demand = reader(series)
    demand.histories(NOW)
    series.fault = MetricsError("throttled")
    with pytest.raises(MetricsError):
        demand.histories(NOW + 600)
    assert demand.known()[ONE.name].measured_at == NOW, "so the decision sees that metrics are missing"


def test_a_clock_that_steps_back_loses_nothing() -> None:
    series = Series({ONE.release: 20.0})
    demand = reader(series)
    demand.histories(NOW)
    found = demand.histories(NOW - 3600)
    assert found[ONE.name].end == NOW


def test_without_series_there_is_no_history() -> None:
    assert reader(Series({})).histories(NOW) == {}


class CountedBins(dict[int, float]):
    """Bins of a release that count how often a point is read."""

    read = 0

    def get(self, at: int, default: float = 0.0) -> float:  # type: ignore[override]
        CountedBins.read += 1
        return super().get(at, default)

    def items(self) -> Any:
        CountedBins.read += len(self)
        return super().items()


def test_twice_the_releases_are_twice_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if each release adds up all releases of its model: 40 were 1,600 sums of 14 days a minute."""

    def work(releases: int) -> int:
        workers = [shifted_workers(f"r{number}") for number in range(releases)]
        demand = DemandReader(PLATFORM, workers, Series({}), boto3.client("cloudwatch"))
        batch_in_flight(2.0, at=NOW - 30)
        for each in workers:
            demand._all[each.release] = CountedBins({int(NOW) - 60 * ago: 1.0 for ago in range(50)})
        monkeypatch.setattr(CountedBins, "read", 0)
        found = demand.known()
        assert len(found) == releases
        return CountedBins.read

    assert work(40) == 2 * work(20)


def test_roles_of_a_release_have_its_demand() -> None:
    roles = [shifted_workers("one", role=role) for role in ("prefill", "decode")]
    demand = DemandReader(
        PLATFORM, [*roles, TWO], Series({ONE.release: 6.0, TWO.release: 2.0}), boto3.client("cloudwatch")
    )
    batch_in_flight(4.0, at=NOW - 30)
    found = demand.histories(NOW)
    assert [found[each.name].values[-1] for each in (*roles, TWO)] == pytest.approx([3.0, 3.0, 1.0])
