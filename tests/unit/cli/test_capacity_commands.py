"""The commands `capacity simulate` and `capacity explain`, on a blueprint and traces of a few hours."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
import yaml

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.checks.objective_checks import longest_start
from inference_blueprints.serving.performance import role_capacity
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.worker_load import request_seconds, worker_load
from inference_blueprints.spec.source import shipped
from inference_contracts.number_text import number
from tests.templates.shared_platform import document
from tests.unit.command_run import Ran, blueprints

WORKERS = "qwen3-8b-elastic-worker"
#: Twenty-six quiet hours, and one hour at four times their rate.
STEPS = [(3600 * hour, 400.0 if hour == 26 else 100.0) for hour in range(27)]

Capacity = Callable[..., Ran]


def written_trace(windows: list[tuple[int, float]]) -> str:
    return "start_s,req/s,CV\n" + "".join(f"{start},{rate},0\n" for start, rate in windows)


def own_blueprint(**shift: object) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(shipped()["elastic-g6e"].read_text("utf-8"))
    rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
    principals = ["arn:aws:iam::111122223333:role/ads"]
    document["spec"] |= {
        "teams": [{"name": "ads", "principals": principals, "monthlyBudgetUsd": 100}],
        "batch": {"queues": [{"name": "nightly", "model": "qwen3-8b", "rates": rates}]},
        "capacityShift": {"action": "shift", **shift},
    }
    return document


def save(document: dict[str, Any], name: str = "own.yaml") -> None:
    Path(name).write_text(yaml.safe_dump(document), encoding="utf-8")


@pytest.fixture
def capacity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Capacity:
    """Runs a command of the group in a folder with a blueprint and a trace."""
    monkeypatch.chdir(tmp_path)
    save(own_blueprint())
    Path("steps.csv").write_text(written_trace(STEPS), encoding="utf-8")

    return partial(blueprints, "capacity", folder=tmp_path, COLUMNS="200")


def answered(ran: Ran) -> dict[str, Any]:
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


def test_simulate_compares_four_ways(capacity: Capacity) -> None:
    document = answered(capacity("simulate", "own.yaml", "--trace", "steps.csv", "-o", "json"))
    assert document["simulated"] is True
    assert document["trace"] == {
        "file": "steps.csv",
        "hours": 27.0,
        "peakRequestsPerSecond": 400.0,
        "learntHours": 24.0,
    }
    (model,) = document["models"]
    ways = {each["way"]: each for each in model["ways"]}
    assert list(ways) == ["shift", "schedule only", "reactive only", "oracle"]
    assert ways["oracle"]["unmetPercent"] == 0.0
    assert ways["oracle"]["freedOfOraclePercent"] == 100.0
    # Twelve workers of one accelerator for three hours.
    assert [each["poolAcceleratorHours"] for each in ways.values()] == [36.0] * 4
    # No day before had the peak: a schedule of the past misses most of it, and the shift less.
    assert ways["schedule only"]["unmetPercent"] > 10 > ways["shift"]["unmetPercent"]
    for each in ways.values():
        assert each["freedPercent"] < 100.0
    assert 50 < ways["shift"]["freedOfOraclePercent"] < 100


def test_a_platform_on_ecs_is_replayed_as_one_on_eks(capacity: Capacity) -> None:
    words = ("own.yaml", "--trace", "steps.csv", "-o", "json")
    document = own_blueprint()
    # ECS refuses floors by schedule beside a shift.
    del document["spec"]["models"][0]["deployments"][0]["aggregated"]["scaledBy"]["load"]["floors"]
    save(document)
    on_eks = answered(capacity("simulate", *words))
    document["spec"]["cluster"] = {"ecs": {}}
    save(document)
    assert answered(capacity("simulate", *words)) == on_eks
    assert answered(capacity("explain", *words, "--at", "26.5"))


def test_the_oracle_frees_what_the_trace_does_not_need(capacity: Capacity) -> None:
    """Another scale, another time of a request or a pool of another size turns this red."""
    document = answered(capacity("simulate", "own.yaml", "--trace", "steps.csv", "-o", "json"))
    (worker,) = document["workers"]
    blueprint = load_blueprint("own.yaml").blueprint
    resolved = resolve(blueprint, 0, 0)[-1]
    full = role_capacity(resolved)
    assert full is not None
    # A full worker serves the rate that the plan says: twelve of them the deployment's.
    assert worker["requestsPerWorker"] / worker["requestSeconds"] == pytest.approx(
        full.objective_requests_per_second / 12
    )
    peak = 12.0 / full.objective_requests_per_second
    ramps = numpy.interp(numpy.arange(24.0, 27.0, 1 / 60) + 1 / 120, [25.5, 26.5], [0.25 * peak, peak])
    expected = 100.0 * (1.0 - ramps.mean())
    oracle = document["models"][0]["ways"][-1]
    assert oracle["freedPercent"] == pytest.approx(expected, rel=1e-6)


def test_text_says_that_it_is_simulated_and_how_the_trace_was_used(capacity: Capacity) -> None:
    shown = capacity("simulate", "own.yaml", "--trace", "steps.csv")
    assert shown.code == 0
    text = " ".join(shown.out.split())
    assert text.startswith("Capacity shift (simulated)")
    for expected in (
        "up to 400 requests per second. It is scaled",
        "workload.peakRequestsPerSecond",
        "the time of a request on a full worker, simulated",
        "within 50 ms per output token (simulated)",
        "of at most 12 workers",
        "The first 24 h are only learnt from",
    ):
        assert expected in text


def test_a_measured_time_of_a_request_replaces_the_profile(capacity: Capacity) -> None:
    command = ("simulate", "own.yaml", "--trace", "steps.csv", "--request-seconds", "5", "-o", "json")
    document = answered(capacity(*command))
    assert document["workers"][0]["requestSeconds"] == 5.0
    assert any("times 5 s (measured)" in note for note in document["notes"])


def test_demand_above_the_maximum_is_said_with_its_share(capacity: Capacity) -> None:
    """Red if a figure looks good because demand was left out, of workers on their own or on a shared pool."""
    words = ("simulate", "own.yaml", "--trace", "steps.csv")
    (fits,) = answered(capacity(*words, "-o", "json"))["workers"]
    assert fits["demandAboveMostPercent"] == 0.0
    seconds = 2.0 * fits["requestsPerWorker"]  # the peak of 12 requests per second needs 24 workers
    (cut,) = answered(capacity(*words, "--request-seconds", f"{seconds}", "-o", "json"))["workers"]
    rates = numpy.interp(numpy.arange(0.0, 27.0, 1 / 60) + 1 / 120, [25.5, 26.5], [6.0, 24.0])
    expected = 100.0 * numpy.maximum(0.0, rates - 12.0).sum() / rates.sum()
    assert cut["demandAboveMostPercent"] == pytest.approx(expected, rel=1e-6)
    assert (
        f"{number(expected)} % of the trace's demand"
        in capacity(*words, "--request-seconds", f"{seconds}").out
    )
    save_shared()
    shared = (*SHARED, "--batch-hours", "nightly=1", "--request-seconds", "60")
    live, shop = answered(capacity(*shared, "-o", "json"))["workers"]
    assert (live["demandAboveMostPercent"] > 1, shop["demandAboveMostPercent"] > 1) == (True, True)
    text = " ".join(capacity(*shared).out.split())
    little = capacity(*words, "--request-seconds", "0.1").out
    assert "needs 0.0 of" not in little
    for each in (live, shop):
        share = number(each["demandAboveMostPercent"])
        expected_note = f"{each['name']}: {share} % of the trace's demand is more than {each['most']} workers"
        assert expected_note in text


def test_the_margin_of_the_blueprint_counts(capacity: Capacity) -> None:
    save(own_blueprint(safetyPercent=100), "careful.yaml")
    freed = []
    for name in ("own.yaml", "careful.yaml"):
        document = answered(capacity("simulate", name, "--trace", "steps.csv", "-o", "json"))
        freed.append(document["models"][0]["ways"][0]["freedPercent"])
    assert freed[0] > freed[1] + 5


def test_workers_that_batch_does_not_use_lend_whole_workers(capacity: Capacity) -> None:
    document = own_blueprint()
    other = {**document["spec"]["models"][0], "name": "other"}
    document["spec"]["models"].append(other)
    document["spec"]["pools"][0]["nodes"]["max"] = 26
    save(document)
    found = answered(capacity("simulate", "own.yaml", "--trace", "steps.csv", "-o", "json"))
    assert [each["batchPlaces"] > 0 for each in found["workers"]] == [True, False]
    shared, apart = ({way["way"]: way for way in each["ways"]} for each in found["models"])
    assert shared["shift"]["freedPercent"] > apart["shift"]["freedPercent"]
    assert any("Batch does not use other-elastic-worker" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--trace", "none.csv"], "none.csv: cannot be read: No such file or directory"),
        (["--trace", "bad.csv"], "bad.csv:3: got '600,x'; write start_s, req/s, CV as numbers"),
        (["--trace", "short.csv"], "got a trace of 10 h; allowed are 25 h or more"),
        (["--trace", "idle.csv"], "all rates of the trace are 0"),
        (
            ["--trace", "steps.csv", "--request-seconds", "0"],
            "got --request-seconds 0; allowed is more than 0",
        ),
        (["--trace", "steps.csv", "--request-seconds", "nan"], "got --request-seconds nan"),
    ],
)
def test_simulate_refuses(capacity: Capacity, words: list[str], expected: str) -> None:
    Path("bad.csv").write_text("start_s,req/s\n0,1\n600,x\n", encoding="utf-8")
    Path("short.csv").write_text(written_trace(STEPS[:10]), encoding="utf-8")
    Path("idle.csv").write_text(written_trace([(start, 0.0) for start, _ in STEPS]), encoding="utf-8")
    ran = capacity("simulate", "own.yaml", *words)
    assert (ran.code, ran.out) == (1, "")
    assert expected in ran.err


@pytest.mark.parametrize("command", [("simulate", "--trace", "steps.csv"), ("explain",)])
def test_a_blueprint_without_the_section_is_refused(capacity: Capacity, command: tuple[str, ...]) -> None:
    ran = capacity(command[0], "elastic-g6e", *command[1:])
    assert ran.code == 1
    assert "elastic has no section 'capacityShift'; add 'capacityShift: {action: observe}'" in ran.err


def test_a_model_without_a_profile_needs_a_measured_time(capacity: Capacity) -> None:
    document = own_blueprint()
    pool = {"name": "small", "instanceTypes": ["g6.2xlarge"], "nodes": {"max": 13}}
    document["spec"]["pools"] = [pool]
    document["spec"]["models"][0]["deployments"][0]["aggregated"]["pool"] = "small"
    document["spec"]["models"][0]["workload"]["peakRequestsPerSecond"] = 1
    save(document)
    resolved = resolve(load_blueprint("own.yaml").blueprint, 0, 0)[-1]
    if request_seconds(resolved) is not None:
        pytest.fail("choose another accelerator: this one has a latency profile now")
    ran = capacity("simulate", "own.yaml", "--trace", "steps.csv")
    assert ran.code == 1
    assert "no latency profile says how long a request of qwen3-8b takes" in ran.err
    assert capacity("simulate", "own.yaml", "--trace", "steps.csv", "--request-seconds", "9").code == 0


def test_explain_tells_the_settings(capacity: Capacity) -> None:
    save(own_blueprint(safetyPercent=33, reclaimSeconds=700, action="observe"))
    blueprint = load_blueprint("own.yaml").blueprint
    (role,) = resolve(blueprint, 0, 0)
    carried, minimum = worker_load(role).requests, longest_start([role]).minimum
    assert minimum.seconds > 1
    text = capacity("explain", "own.yaml").out
    for expected in (
        f"{WORKERS} (model qwen3-8b, pool l40s): the floor is between 2 and 12 workers",
        f"A worker carries {carried:g} requests in flight, within 50 ms per output token (simulated)",
        "Batch gets 0 to 16 places",
        "only recorded",
        "within 700 s (reclaimSeconds), with a margin of 33 % (safetyPercent)",
        "back after 700 s. It is from capacityShift.reclaimSeconds of the blueprint",
        f"{WORKERS}: a start on a new node takes at least {minimum.seconds:.0f} s (weights "
        f"{minimum.seconds:.0f} s, computed)",
        "Not in it, because you have not measured it: launch 94 s, published; image unknown, counted as 0 s; "
        "engine 87 s, published. With these it is 207 s.",
        "Metrics older than 180 s count as missing",
        "batch gets nothing",
        "before 24 h of demand are known",
    ):
        assert expected in text
    document = answered(capacity("explain", "own.yaml", "-o", "json"))
    assert document["settings"] == {
        "action": "observe",
        "safetyPercent": 33,
        "reclaimSeconds": 700,
        "reclaimSecondsFrom": "blueprint",
    }
    assert document["explanation"] == text.splitlines()


def test_explain_names_the_measured_parts_of_a_start(capacity: Capacity) -> None:
    document = own_blueprint(reclaimSeconds=900)
    workers = document["spec"]["models"][0]["deployments"][0]["aggregated"]
    workers["measuredStart"] = {"launchSeconds": 150, "engineSeconds": 70}
    save(document)
    (role,) = resolve(load_blueprint("own.yaml").blueprint, 0, 0)
    weights = longest_start([role]).part("weights").seconds or 0.0
    text = capacity("explain", "own.yaml").out
    assert (
        f"takes at least {220 + weights:.0f} s (launch 150 s, measured; weights {weights:.0f} s, computed; "
        "engine 70 s, measured)"
    ) in text
    assert "Not in it, because you have not measured it: image unknown, counted as 0 s.\n" in text


def test_a_reclaim_time_below_the_measured_start_is_refused_with_its_parts(capacity: Capacity) -> None:
    document = own_blueprint(reclaimSeconds=200)
    workers = document["spec"]["models"][0]["deployments"][0]["aggregated"]
    workers["measuredStart"] = {"launchSeconds": 150, "engineSeconds": 70}
    save(document)
    ran = capacity("explain", "own.yaml")
    assert ran.code == 1
    assert "got 200, but a worker of qwen3-8b-elastic on a new node needs at least" in ran.err
    assert "(launch 150 s, measured; weights " in ran.err


def test_explain_says_that_the_start_of_workers_is_assumed(capacity: Capacity) -> None:
    assert "back after 600 s. It is assumed: the default" in capacity("explain", "own.yaml").out
    document = answered(capacity("explain", "own.yaml", "-o", "json"))
    assert document["settings"]["reclaimSecondsFrom"] == "default"


def explained(capacity: Capacity, *words: str) -> dict[str, Any]:
    command = ("explain", "own.yaml", "--trace", "steps.csv", *words, "-o", "json")
    document = answered(capacity(*command))
    (decision,) = document["decisions"]
    assert isinstance(decision, dict)
    return decision


def codes(decision: dict[str, Any]) -> set[str]:
    return {reason["code"] for reason in decision["reasons"]}


def test_explain_before_a_day_is_known(capacity: Capacity) -> None:
    decision = explained(capacity, "--at", "10")
    assert (decision["forecast"], decision["places"]) == (None, 0)
    assert codes(decision) == {"no_history"}


def test_explain_follows_the_trace(capacity: Capacity) -> None:
    quiet = explained(capacity, "--at", "25")
    assert quiet["forecast"]["now"] == pytest.approx(quiet["requestSeconds"] * 12.0 / 4.0)
    assert quiet["places"] > 8
    peak = explained(capacity)
    assert peak["forecast"]["now"] == pytest.approx(4.0 * quiet["forecast"]["now"], rel=0.01)
    assert peak["places"] < quiet["places"] < peak["batchPlaces"]
    assert peak["floor"] > quiet["floor"]
    assert {"forecast", "present_demand"} <= codes(quiet)


def test_explain_in_words(capacity: Capacity) -> None:
    decision = explained(capacity, "--at", "26.2")
    text = capacity("explain", "own.yaml", "--trace", "steps.csv", "--at", "26.2").out
    assert text.startswith("Simulated decision, 26.2 h after the start of steps.csv")
    assert f"the floor is {decision['floor']} of 2 to 12 workers; batch may have {decision['places']}" in text
    assert f"Demand now: {decision['forecast']['now']:.4g} requests in flight." in text
    assert f"{decision['forecast']['later']:.4g} (+" in text
    assert "a margin of 0 % (safetyPercent)" in text
    for reason in decision["reasons"]:
        assert f"{reason['code']}: {reason['text']}." in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--at", "3"], "got --at without --trace"),
        (["--at", "0", "--request-seconds", "1"], "got --at and --request-seconds without --trace"),
        (
            ["--trace", "steps.csv", "--at", "0"],
            "got --at 0; allowed are hours of the trace, from 0.02 to 27",
        ),
        (["--trace", "steps.csv", "--at", "27.1"], "got --at 27.1; allowed"),
        (["--trace", "steps.csv", "--at", "nan"], "got --at nan; allowed"),
        (["--trace", "steps.csv", "--at", "inf"], "got --at inf; allowed"),
    ],
)
def test_explain_refuses(capacity: Capacity, words: list[str], expected: str) -> None:
    ran = capacity("explain", "own.yaml", *words)
    assert (ran.code, ran.out) == (1, "")
    assert expected in ran.err


def save_shared(*, load: int = 100_000, at_once: int | None = None) -> None:
    """Save a blueprint whose two models of real time and one of batch share 16 accelerators.

    at_once: Most requests at once in an engine of batch. Its latency profile does not reach the default.
    """
    found = document()
    live, shop, _ = found["spec"]["models"]
    live["workload"]["peakRequestsPerSecond"] = 100
    shop["workload"]["peakRequestsPerSecond"] = 60
    workers = shop["deployments"][0]["aggregated"]
    workers |= {"tensorParallelSize": 1, "replicas": {"min": 1, "max": 8}}
    del workers["requestsAtOnce"]  # one GPU has a latency profile
    found["spec"]["batch"]["queues"][0]["load"] = {"requestsPerDay": load}
    if at_once:
        found["spec"]["models"][2]["engine"] = {"vllm": {"args": {"max-num-seqs": at_once}}}
    save(found, "shared.yaml")
    for name, shift in (("live", 0), ("shop", 6)):
        hours = [(3600 * hour, 100.0 if 8 <= (hour + shift) % 24 < 18 else 20.0) for hour in range(7 * 24)]
        Path(f"{name}.csv").write_text(written_trace(hours), encoding="utf-8")


SHARED = ("simulate", "shared.yaml", "--trace", "live=live.csv", "--trace", "shop=shop.csv")


def test_a_shared_pool_is_compared_with_its_bound_and_its_rivals(capacity: Capacity) -> None:
    """Red if a way in gets the trace of another one, or if batch's work does not count."""
    save_shared()
    found = answered(capacity(*SHARED, "--batch-hours", "nightly=120", "-o", "json"))
    assert found["models"] == []
    (pool,) = found["pools"]
    assert (pool["pool"], pool["tunedHours"], pool["countedHours"]) == ("h100", 96.0, 72.0)
    ways = {each["way"]: each for each in pool["ways"]}
    assert list(ways) == [
        "clairvoyant bound",
        "shift",
        "one-line rule",
        "schedule",
        "elastic fleets",
        "fixed fleets",
    ]
    # 4.2 and 2.5 workers at the peaks, and 5 accelerators all day at 85 %.
    assert ways["fixed fleets"]["accelerators"] == 5 + 3 + 6
    assert 8 <= ways["clairvoyant bound"]["accelerators"] <= ways["shift"]["accelerators"] < 16
    assert ways["shift"]["keepsObjectives"]
    assert ways["shift"]["ofBound"] < ways["fixed fleets"]["ofBound"]
    assert set(ways["shift"]["unmetPercent"]) == {"live-main-server", "shop-main-server"}
    assert pool["shiftOnThisPool"]["accelerators"] == 16.0
    less = answered(capacity(*SHARED, "--batch-hours", "nightly=0", "-o", "json"))["pools"][0]["ways"]
    assert less[-1]["accelerators"] == pytest.approx(8, abs=1)


@pytest.mark.parametrize("columns", ["60", "120"])
def test_a_shared_pool_in_words(capacity: Capacity, columns: str) -> None:
    save_shared(load=4_000_000, at_once=200)
    shown = capacity(*SHARED, COLUMNS=columns)
    assert shown.code == 0, shown.err
    assert all(len(line) <= int(columns) for line in shown.out.splitlines())
    text = " ".join(shown.out.split())
    assert text.startswith("Pool h100 (simulated)")
    for expected in ("clairvoyant bound", "shift, this pool", "nightly needs", "on the first 96 h"):
        assert expected in text


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--batch-hours", "other=3"), "allowed are nightly"),
        (("--batch-hours", "nightly=many"), "write QUEUE=HOURS"),
        (("--batch-hours", "=3"), "got --batch-hours =3; write QUEUE=HOURS"),
        (("--trace", "other=live.csv"), "allowed are live, shop, nightly"),
        (("--trace", "live.csv"), "give one file for all"),
        (("--trace", "shop="), "got --trace shop=; write NAME=FILE"),
        (("--trace", "=shop.csv"), "got --trace =shop.csv; write NAME=FILE"),
        (("--trace", "live=shop.csv"), "got two traces for live; give one"),
        (("--batch-hours", "nightly=1", "--batch-hours", "nightly=2"), "got --batch-hours twice for nightly"),
    ],
)
def test_a_shared_pool_says_what_is_missing(
    capacity: Capacity, words: tuple[str, ...], expected: str
) -> None:
    save_shared()
    shown = capacity(*SHARED, *words)
    assert shown.code == 1
    assert expected in shown.err


def test_the_simulation_and_the_plan_know_the_same_speed_of_batch(capacity: Capacity) -> None:
    """Red if one has a figure where the other says unknown, as beyond the end of a latency profile."""
    planned = ("plan", "shared.yaml", "-o", "json", "--sections", "batchDays")
    save_shared(load=4_000_000, at_once=200)
    (day,) = json.loads(blueprints(*planned, folder=Path.cwd()).out)["batchDays"]
    (pool,) = answered(capacity(*SHARED, "-o", "json"))["pools"]
    expected = 4_000_000 / day["fullRequestsPerSecond"] / 3600 * 16
    assert pool["batchAcceleratorHoursPerDay"]["nightly"] == pytest.approx(expected)
    save_shared(load=4_000_000)
    (day,) = json.loads(blueprints(*planned, folder=Path.cwd()).out)["batchDays"]
    why = "the latency profile ends at fewer requests at once than a worker holds"
    assert (day["fullRequestsPerSecond"], day["whyUnknown"]) == (None, why)
    refused = capacity(*SHARED)
    assert (refused.code, f"queue nightly needs: {why}; give --batch-hours" in refused.err) == (1, True)


def test_a_decision_on_a_shared_pool_is_explained_with_its_own_handover(capacity: Capacity) -> None:
    """Red if it is explained as on a pool of its own, whose floors wait for ten minutes."""
    save_shared()
    words = ("explain", "shared.yaml", "--trace", "live.csv")
    at_night, by_day = (
        answered(capacity(*words, "--at", at, "-o", "json"))["decisions"][0] for at in ("147", "156")
    )
    assert (at_night["name"], at_night["floor"]) == ("live-main-server", 2)
    assert by_day["floor"] >= 5
    text = " ".join(at_night["explanation"])
    assert "divides the pool by priority" in text
    assert "waits_to_lower" not in text


def test_each_way_in_needs_a_trace(capacity: Capacity) -> None:
    save_shared()
    shown = capacity("simulate", "shared.yaml", "--trace", "live=live.csv", "--batch-hours", "nightly=1")
    assert "got no trace for shop; give --trace shop=FILE" in shown.err


def test_a_file_may_have_an_equals_sign(capacity: Capacity) -> None:
    """Red if a part of its name is taken for a way in."""
    save_shared()
    Path("a=b.csv").write_text(Path("live.csv").read_text(encoding="utf-8"), encoding="utf-8")
    assert capacity("explain", "shared.yaml", "--trace", "a=b.csv").code == 0


def test_explain_takes_the_traces_that_simulate_takes(capacity: Capacity) -> None:
    """Red if it explains a pool by one trace for all, refuses names, or reads the trace of another way in."""
    save_shared()
    words = ("explain", *SHARED[1:], "--at", "156")
    live, shop = answered(capacity(*words, "-o", "json"))["decisions"]
    # At 12:00 one has its day, and the other its evening.
    assert live["floor"] > shop["floor"]
    assert "156 h after the start of the traces" in capacity(*words).out
    shown = capacity("explain", "shared.yaml", "--trace", "live=live.csv")
    assert (shown.code, "got no trace for shop; give --trace shop=FILE" in shown.err) == (1, True)
    shown = capacity("explain", *SHARED[1:], "--trace", "other=shop.csv")
    assert (shown.code, "got a trace for other; allowed are live, shop, nightly" in shown.err) == (1, True)
