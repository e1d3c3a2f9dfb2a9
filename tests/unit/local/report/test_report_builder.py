"""Figures of the report against figures worked out by hand."""

import copy
import dataclasses
import json
import shlex
from typing import Any

import jsonschema
import pytest
import yaml

from inference_blueprints.measure.statistics import capacity_of
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec.types import LatencyPercentiles, Objectives
from inference_local.report import as_dict, curl_line
from inference_local.serving.platform_parts import PlatformPart
from inference_local.worker_kills import WorkerLoss
from tests.unit.local.report.conftest import ReportOf
from tests.unit.local.report.samples import (
    ANSWER,
    BATCH_OUTCOME,
    PROMPT,
    SCALING,
    answered,
    failed,
    result_of,
    run_of,
    summary_of,
)
from tests.unit.local.report.schema import SCHEMA

G6E_2XLARGE, NODES, GPUS = 2.24208, 2, 2
REAL = (PlatformPart("engine", "real", "a GPU"),)


def test_the_document_has_exactly_the_promised_shape(report_of: ReportOf) -> None:
    report = report_of(run_of(result_of(answered(0.0, 100.0), failed(1.0, "HTTP 500", "gone"))))
    document = json.loads(json.dumps(as_dict(report), allow_nan=False))
    jsonschema.validate(document, SCHEMA)


def test_streams_lost_with_a_worker_are_reported_and_absent_where_none_was_killed(
    report_of: ReportOf,
) -> None:
    run = run_of(result_of(answered(0.0, 100.0)))
    assert as_dict(report_of(run))["workerLosses"] is None
    loss = WorkerLoss("qwen3-8b-main", "worker", workers=2, killed=1, streams=8, moved=4, lost=1)
    document = as_dict(report_of(run, worker_losses=(loss,)))
    jsonschema.validate(document, SCHEMA)
    assert document["workerLosses"][0]["lost"] == 1


def test_batch_jobs_are_reported_and_absent_where_none_ran(report_of: ReportOf) -> None:
    run = run_of(result_of(answered(0.0, 100.0)))
    assert as_dict(report_of(run))["batch"] is None
    document = as_dict(report_of(run, batch=(BATCH_OUTCOME,)))
    jsonschema.validate(document, SCHEMA)
    assert document["batch"][0]["costUsd"] == 0.08
    assert document["batch"][0]["signals"] == {"name": "captions", "written": 200, "missing": 0, "wrong": 0}
    plain = as_dict(report_of(run, batch=(dataclasses.replace(BATCH_OUTCOME, signals=None),)))
    jsonschema.validate(plain, SCHEMA)
    assert plain["batch"][0]["signals"] is None


def test_scaling_is_reported_and_absent_where_no_role_is_elastic(report_of: ReportOf) -> None:
    run = run_of(result_of(answered(0.0, 100.0)))
    assert as_dict(report_of(run))["scaling"] is None
    document = as_dict(report_of(run, scaling=SCALING))
    jsonschema.validate(json.loads(json.dumps(document, allow_nan=False)), SCHEMA)
    assert (document["scaling"]["workersMax"], document["scaling"]["gpuHours"]) == (3, 0.2)
    assert document["scaling"]["decisions"][0]["readings"] == {"queue-length": None}


def test_elastic_workers_that_follow_nothing_are_priced_in_their_smallest_number(report_of: ReportOf) -> None:
    """On ECS nothing decides here, so two of at most twelve workers run."""
    document = yaml.safe_load((blueprints_directory() / "elastic-g6e.yaml").read_text(encoding="utf-8"))
    report = report_of(run_of(result_of(answered(0.0, 100.0))), plan=summary_of(document))
    assert "held 2.0 of 12 accelerators on average" in report.measurement.cost_note


def test_workers_that_followed_the_load_are_priced_by_the_gpus_that_they_held(
    report_of: ReportOf, summary: PlanSummary
) -> None:
    run = run_of(result_of(answered(0.0, 100.0)))
    planned = capacity_of({"qwen3-8b"}, summary).accelerators
    fixed, elastic = report_of(run), report_of(run, scaling=SCALING)
    held = (planned - 0.5) / planned
    for before, after in (
        (fixed.measurement, elastic.measurement),
        (fixed.models[0].measurement, elastic.models[0].measurement),
    ):
        assert after.price_per_million_tokens_usd
        assert before.price_per_million_tokens_usd
        assert after.throughput_per_gpu_tokens_per_second
        assert before.throughput_per_gpu_tokens_per_second
        assert before.price_per_million_tokens_usd.output is not None
        assert before.throughput_per_gpu_tokens_per_second.output is not None
        assert after.price_per_million_tokens_usd.output == pytest.approx(
            before.price_per_million_tokens_usd.output * held
        )
        assert after.throughput_per_gpu_tokens_per_second.output == pytest.approx(
            before.throughput_per_gpu_tokens_per_second.output / held
        )
        assert f"held {planned - 0.5:.1f} of {planned} accelerators on average" in after.cost_note
    other = dataclasses.replace(SCALING, unused_gpus={"other": 0.5})
    assert report_of(run, scaling=other).measurement == fixed.measurement


def test_without_any_answer_figures_are_null_and_the_shape_stays(report_of: ReportOf) -> None:
    document = as_dict(report_of(run_of(result_of(failed(0.0, "HTTP 500"), failed(1.0, "HTTP 503")))))
    jsonschema.validate(document, SCHEMA)
    assert document["ttftMs"] == {"p50": None, "p90": None, "p95": None, "p99": None}
    assert document["prefixCacheHitRatio"] is None
    assert document["throughputPerGpuTokensPerSecond"] is None
    assert document["pricePerMillionTokensUsd"] is None
    assert document["failures"] == document["requests"] == 2


def test_latencies_are_those_of_the_answered_requests(report_of: ReportOf) -> None:
    outcomes = [answered(float(number), 100.0 * (number + 1), token_ms=20.0) for number in range(11)]
    document = as_dict(report_of(run_of(result_of(*outcomes, failed(99.0, "HTTP 500")))))
    assert document["ttftMs"] == pytest.approx({"p50": 600.0, "p90": 1000.0, "p95": 1050.0, "p99": 1090.0})
    assert document["timePerOutputTokenMs"] == pytest.approx(
        {"p50": 20.0, "p90": 20.0, "p95": 20.0, "p99": 20.0}
    )
    assert document["endToEndMs"]["p50"] == pytest.approx(600.0 + 20.0 * (ANSWER - 1))
    assert document["prefixCacheHitRatio"] == pytest.approx(0.25)


def test_requests_beyond_the_latency_profile_have_unknown_times(report_of: ReportOf) -> None:
    """Bug: the simulated engine's times of prompts longer than its table passed as those of the hardware."""
    run = run_of(
        result_of(*(answered(float(number), 100.0) for number in range(4))),
        objectives=Objectives(time_to_first_token_p90_ms=200),
    )
    covered = report_of(run).models[0]
    assert (covered.warnings, [each.met for each in covered.objectives]) == ((), [True])
    assert run.profile is not None
    short = dataclasses.replace(run.profile, prefill_isl=(1.0, PROMPT / 2), prefill_ttft_ms=(10.0, 20.0))
    beyond = report_of(dataclasses.replace(run, profile=short)).models[0]
    [warning] = beyond.warnings
    assert "4 of 4 answered requests are longer than the latency profile of Qwen/Qwen3-8B on l40s" in warning
    assert "ends at 500 tokens of a prompt" in warning
    assert [each.met for each in beyond.objectives] == [None]


def test_failures_are_counted_by_reason_with_what_was_said_first(report_of: ReportOf) -> None:
    outcomes = [failed(0.0, "HTTP 500", "first"), failed(1.0, "HTTP 500", "second"), failed(2.0, "HTTP 429")]
    document = as_dict(report_of(run_of(result_of(*outcomes))))
    assert document["failureReasons"] == {"HTTP 500": 2, "HTTP 429": 1}
    assert document["models"][0]["failureDetails"] == {"HTTP 500": "first", "HTTP 429": ""}


def test_throughput_and_price_follow_from_tokens_seconds_gpus_and_nodes(report_of: ReportOf) -> None:
    outcomes = [answered(float(number), 100.0) for number in range(10)]
    document = as_dict(report_of(run_of(result_of(*outcomes, failed(50.0, "HTTP 500"), elapsed=100.0))))
    output, both = 10 * ANSWER, 10 * (ANSWER + PROMPT)
    throughput = document["throughputPerGpuTokensPerSecond"]
    assert throughput == pytest.approx({"inputAndOutput": both / 100 / GPUS, "output": output / 100 / GPUS})
    usd = NODES * G6E_2XLARGE * 100 / 3600
    price = document["pricePerMillionTokensUsd"]
    assert price == pytest.approx({"inputAndOutput": usd / both * 1e6, "output": usd / output * 1e6})
    assert document["costNote"].startswith("At the replayed load")
    assert "us-east-1" in document["costNote"]


def test_simulated_engines_without_a_profile_give_no_throughput_and_no_price(report_of: ReportOf) -> None:
    document = as_dict(report_of(run_of(result_of(answered(0.0, 100.0)), profiled=False)))
    for values in (document, document["models"][0]):
        assert values["throughputPerGpuTokensPerSecond"] is None
        assert values["pricePerMillionTokensUsd"] is None
        assert "no latency profile" in values["costNote"]
    assert document["simulated"] is True


def test_real_engines_need_no_profile(report_of: ReportOf) -> None:
    document = as_dict(report_of(run_of(result_of(answered(0.0, 100.0)), profiled=False), parts=REAL))
    assert document["simulated"] is False
    assert document["throughputPerGpuTokensPerSecond"] is not None


@pytest.mark.parametrize(("limit", "met"), [(500.0, True), (50.0, False)])
def test_objectives_are_held_against_the_ninetieth_percentile(
    report_of: ReportOf, limit: float, *, met: bool
) -> None:
    objectives = Objectives(time_to_first_token_p90_ms=limit)
    document = as_dict(report_of(run_of(result_of(answered(0.0, 100.0)), objectives=objectives)))
    [objective] = document["models"][0]["objectives"]
    assert objective == pytest.approx(
        {"name": "timeToFirstTokenP90Ms", "limitMs": limit, "measuredMs": 100.0, "met": met}
    )
    assert document["objectivesMet"] is met


def test_each_percentile_and_the_whole_request_are_held_against_their_own_limit(report_of: ReportOf) -> None:
    """Every objective was compared with the 90th percentile, and whole requests with none."""
    outcomes = [answered(float(number), 100.0 + number) for number in range(101)]
    objectives = Objectives(
        time_to_first_token_ms=LatencyPercentiles(p50=151.0, p95=194.0),
        request_ms=LatencyPercentiles(p99=60_000.0),
    )
    found = as_dict(report_of(run_of(result_of(*outcomes), objectives=objectives)))["models"][0]["objectives"]
    assert [(each["name"], each["met"]) for each in found] == [
        ("timeToFirstTokenMs.p50", True),
        ("timeToFirstTokenMs.p95", False),
        ("requestMs.p99", True),
    ]
    assert [each["measuredMs"] for each in found[:2]] == pytest.approx([150.0, 195.0])


def test_without_objectives_nothing_is_met_or_missed(report_of: ReportOf) -> None:
    assert as_dict(report_of(run_of(result_of(answered(0.0, 100.0)))))["objectivesMet"] is None


def test_several_models_are_reported_apart_and_together(
    report_of: ReportOf, summary_of_two: PlanSummary
) -> None:
    first = run_of(result_of(answered(0.0, 100.0), elapsed=100.0))
    second = run_of(result_of(answered(0.0, 300.0), failed(1.0, "HTTP 500"), model="other", elapsed=50.0))
    document = as_dict(report_of(first, second, plan=summary_of_two))
    assert [model["name"] for model in document["models"]] == ["qwen3-8b", "other"]
    assert [model["requests"] for model in document["models"]] == [1, 2]
    assert (document["requests"], document["failures"]) == (3, 1)
    assert document["ttftMs"]["p50"] == pytest.approx(200.0)
    tokens = ANSWER + PROMPT
    throughputs = [
        values["throughputPerGpuTokensPerSecond"]["inputAndOutput"]
        for values in (*document["models"], document)
    ]
    assert throughputs == pytest.approx([tokens / 100 / 2, tokens / 50 / 1, 2 * tokens / 100 / 3])


def test_one_model_without_a_profile_leaves_the_sum_without_a_price(
    report_of: ReportOf, summary_of_two: PlanSummary
) -> None:
    first = run_of(result_of(answered(0.0, 100.0)))
    second = run_of(result_of(answered(0.0, 300.0), model="other"), profiled=False)
    document = as_dict(report_of(first, second, plan=summary_of_two))
    assert document["pricePerMillionTokensUsd"] is None
    assert document["models"][0]["pricePerMillionTokensUsd"] is not None


def test_models_in_one_pool_share_its_price_by_their_accelerators(document: dict[str, Any]) -> None:
    changed = copy.deepcopy(document)
    other = copy.deepcopy(changed["spec"]["models"][0])
    other["name"] = "other"
    changed["spec"]["models"][0]["deployments"][0]["aggregated"]["replicas"] = 1
    other["deployments"][0]["aggregated"]["replicas"] = 1
    changed["spec"]["models"].append(other)
    summary = summary_of(changed)
    for models, nodes in ((["qwen3-8b"], 1), (["other"], 1), (["qwen3-8b", "other"], 2)):
        capacity = capacity_of(models, summary)
        assert capacity.accelerators == nodes
        assert capacity.usd_per_hour == pytest.approx(nodes * G6E_2XLARGE)


def test_the_curl_line_has_the_public_name(report_of: ReportOf, document: dict[str, Any]) -> None:
    """What callers send: a line to copy that names the model as its documentation does."""
    changed = copy.deepcopy(document)
    changed["spec"]["models"][0]["publicName"] = "Qwen/Qwen3-8B"
    run = run_of(result_of(answered(0.0, 100.0)))
    lines = [report_of(run).models[0].curl, report_of(run, plan=summary_of(changed)).models[0].curl]
    assert [json.loads(shlex.split(line)[-1])["model"] for line in lines] == ["qwen3-8b", "Qwen/Qwen3-8B"]


def test_the_curl_line_survives_a_shell() -> None:
    words = shlex.split(curl_line("http://127.0.0.1:1/v1", "it's $HOME `x`"))
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:1/v1/chat/completions"]
    assert json.loads(words[-1])["model"] == "it's $HOME `x`"
