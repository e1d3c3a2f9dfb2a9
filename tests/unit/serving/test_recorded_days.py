"""Rates by hour from a file beside the blueprint."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import load_blueprint, load_standard_input
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.autoscaling.request_rates import RateWindow, RequestRates
from inference_blueprints.serving.traffic import WayIn, model_traffic
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import BlueprintError, UserError

HOUR = 3600


def blueprint_file(folder: Path, rates: str, **streaming: Any) -> Path:
    """Write `streaming-g6e` with rates of its model, and return the file."""
    document = load_blueprint("streaming-g6e").written.model_dump(by_alias=True, exclude_unset=True)
    [model] = document["spec"]["models"]
    model["workload"]["day"] = {"rates": rates}
    document["spec"]["streaming"][0].update(streaming)
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def way(blueprint: Blueprint, kind: str = "realTime") -> WayIn:
    return next(
        each for each in model_traffic(blueprint.spec, blueprint.spec.models[0]).ways if each.kind == kind
    )


def two_days(folder: Path, name: str = "rates.csv") -> None:
    """Write rates in windows of half an hour: 10 a second, but 40 and 20 from 08:00, and 30 a day later."""
    rates = dict.fromkeys(range(96), 10) | {16: 40, 17: 20, 64: 30, 65: 30}
    lines = [f"{1800 * window},{rate}" for window, rate in rates.items()]
    (folder / name).write_text("start_s,req/s\n" + "\n".join(lines) + "\n", encoding="utf-8")


def test_an_hour_has_the_mean_and_the_highest_rate_of_all_days(tmp_path: Path) -> None:
    """Red if one window stands for its hour, one day for all, or the peak of the file is not that stated."""
    (tmp_path / "traces").mkdir()
    two_days(tmp_path, "traces/rates.csv")
    found = way(load_blueprint(str(blueprint_file(tmp_path, "traces/rates.csv"))).blueprint)
    peak = found.means.peak_requests_per_second
    # (40 + 20 + 30 + 30) / 4 = 30 of 40.
    assert (found.rate_in(8) / peak, found.peak_in(8) / peak) == (0.75, 1.0)
    assert {found.rate_in(hour) / peak for hour in range(24) if hour != 8} == {0.25}
    assert {found.peak_in(hour) / peak for hour in range(24) if hour != 8} == {0.25}


def test_a_streaming_job_has_a_day_of_its_own(tmp_path: Path) -> None:
    """Red if a job's rates are the model's, or the peak lasts all day."""
    two_days(tmp_path)
    workload = {"inputTokens": 400, "outputTokens": 20, "day": {"rates": "rates.csv"}}
    path = blueprint_file(tmp_path, "rates.csv", workload=workload)
    found = way(load_blueprint(str(path)).blueprint, "streaming")
    assert found.rate_in(3) == found.means.peak_requests_per_second / 4
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["spec"]["streaming"][0]["workload"]["day"] = {"hours": [0.5] * 23 + [1.0]}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    found = way(load_blueprint(str(path)).blueprint, "streaming")
    assert found.rate_in(3) == found.peak_in(3) == found.means.peak_requests_per_second / 2


@pytest.mark.parametrize("length", [600.0, 5400.0])
def test_windows_need_not_be_hours_and_may_begin_at_any_time_of_the_day(length: float) -> None:
    """Red if a window belongs to the hour of its begin alone, or the first one is taken for midnight."""
    begin = 22 * HOUR
    windows = [RateWindow(begin + length * index, 1.0) for index in range(round(24 * HOUR / length))]
    windows[0] = RateWindow(begin, 4.0)
    means, peaks = RequestRates(tuple(windows)).by_hour()
    first = min(1.0, length / HOUR)
    assert means[22] == pytest.approx(4.0 * first + 1.0 * (1.0 - first))
    assert (peaks[22], peaks[23]) == (4.0, 4.0 if length > HOUR else 1.0)
    assert means[21] == 1.0
    assert min(means) == 1.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "rates.csv: cannot be read: No such file or directory"),
        ("hour,rate\n" + "".join(f"{hour},1\n" for hour in range(24)), "got rates of 0.00666667 h, at least"),
        ("".join(f"{HOUR * hour},1\n" for hour in range(23)), "rates.csv: got rates of 23 h, at least a day"),
        ("".join(f"{HOUR * hour},1\n" for hour in range(30) if hour != 7), "at 28800 s starts 7200 s after"),
        ("0,1\n3600,-1\n7200,1\n", "rates.csv:2: got '3600,-1'; allowed are finite numbers, and rate"),
        ("0\n3600\n", "rates.csv:1: got '0'; write start_s, req/s, CV as numbers"),
        ("start,rate\n2026-11-01T00:00:00+02:00,5\n", "rates.csv:2: got '2026-11-01T00:00:00+02:00,5'"),
        ("".join(f"{HOUR * hour},0\n" for hour in range(24)), "rates.csv: all rates are 0; give rates with"),
    ],
    ids=["missing", "hours", "short", "gap", "negative", "columns", "text", "none"],
)
def test_files_that_say_nothing_of_a_day_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    """Red if such a file is read as a day, or an error does not name the key."""
    if text is not None:
        (tmp_path / "rates.csv").write_text(text, encoding="utf-8")
    with pytest.raises(BlueprintError) as refused:
        load_blueprint(str(blueprint_file(tmp_path, "rates.csv")))
    problem, *further = refused.value.problems
    assert {each.path for each in [problem, *further]} == {"spec.models[0].workload.day.rates"}
    assert message in problem.message


def test_other_places_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Red if an address of S3 is read as a path, or standard input as a folder."""
    path = blueprint_file(tmp_path, "s3://traces/rates.csv")
    with pytest.raises(BlueprintError, match=r"expected the path of a file beside the blueprint.*aws s3 cp"):
        load_blueprint(str(path))
    text = blueprint_file(tmp_path, "rates.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    with pytest.raises(BlueprintError, match="from standard input has no files beside it"):
        load_standard_input()


def test_other_mistakes_are_reported_beside_it(tmp_path: Path) -> None:
    """Red if a file that cannot be read hides other problems, or a broken key raises at the reader."""
    path = blueprint_file(tmp_path, "missing.csv", workload={"inputTokens": "many", "day": 5})
    with pytest.raises(BlueprintError) as refused:
        load_blueprint(str(path))
    places = {problem.path for problem in refused.value.problems}
    assert places >= {
        "spec.models[0].workload.day.rates",
        "spec.streaming[0].workload.day",
        "spec.streaming[0].workload.inputTokens",
    }


def test_shipped_rates_are_whole_days_to_learn_from_and_to_count() -> None:
    """Red if `capacity simulate` refuses the shipped files, or an hour of the day counts more."""
    files = [*(blueprints_directory() / "rates").glob("*.csv")]
    assert files
    for rates in map(RequestRates.read, files):
        days, rest = divmod(rates.end_seconds - rates.start_seconds, 24 * HOUR)
        assert days >= 2
        assert rest == 0


def test_a_day_begins_at_midnight_in_utc() -> None:
    """Red if seconds since 1970 are not read as such: their days begin at midnight too."""
    begin = 1_780_012_800 + 5 * HOUR  # 2026-05-29, 05:00 UTC
    rates = RequestRates(tuple(RateWindow(begin + HOUR * index, 1.0 + (index == 0)) for index in range(24)))
    assert rates.by_hour()[0].index(2.0) == 5
    with pytest.raises(UserError, match="at least a day"):
        rates.between(begin, begin + 23 * HOUR).by_hour()
