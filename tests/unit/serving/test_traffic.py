"""What deployments have to serve, from all ways in which requests come in: told by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.loading import LoadedBlueprint, load_blueprint, parse_blueprint
from inference_blueprints.render.monitoring.platform_rules import platform_rules
from inference_blueprints.report.plan.section import Label, PlanSummary
from inference_blueprints.report.plan.sections.batch import BATCH_DAYS, BatchDaySummary, batch_days
from inference_blueprints.report.plan.sections.memory import MEMORY
from inference_blueprints.report.plan.sections.objectives import OBJECTIVES
from inference_blueprints.report.plan.sections.tokens import TOKEN_PRICES, unknown_speeds
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.serving.checks.serving_checks import address_findings, serving_findings
from inference_blueprints.serving.estimates.request_estimates import held_tokens
from inference_blueprints.serving.performance import most_requests_per_second, role_capacity
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
from inference_blueprints.serving.scaling.worker_load import worker_load
from inference_blueprints.serving.traffic import (
    deployment_traffic,
    further_routes,
    model_traffic,
    own_deployments,
    own_part,
    way_address,
)
from inference_blueprints.serving.way_capacity import longest_hours
from inference_blueprints.spec.types import Objectives, StreamedRequests, StreamingJob
from inference_contracts.errors import BlueprintError
from inference_contracts.shift_names import ShiftConfiguration

#: An ad server's short requests beside long ones at night, on deployments of their own.
ADS = """
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: ads}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.12xlarge], nodes: {max: 6}}
  models:
  - name: qwen
    weights: {huggingFace: Qwen/Qwen3-8B, revision: v1}
    workload: {inputTokens: {mean: 1000, max: 4000}, outputTokens: 20, peakRequestsPerSecond: 10}
    deployments:
    - name: live
      aggregated: {pool: l40s, replicas: 2, tensorParallelSize: 1}
    - name: night
      aggregated: {pool: l40s, replicas: 9, tensorParallelSize: 1}
  teams:
  - {name: ads, principals: ["arn:aws:iam::123456789012:role/Ads"], monthlyBudgetUsd: 200000}
  batch:
    queues:
    - name: nightly
      model: qwen
      deadlineHours: 10
      workload: {inputTokens: {mean: 20000, max: 30000}, outputTokens: {mean: 100, max: 200}}
      deployments: [night]
      load: {requestsPerDay: 72000, requestsPerJob: 36000}
      rates: {usdPerMillionInputTokens: 0.05, usdPerMillionOutputTokens: 0.4}
"""


def loaded(**queue: Any) -> LoadedBlueprint:
    """Return the blueprint with other keys of its queue; None removes one."""
    document = yaml.safe_load(ADS)
    [first] = document["spec"]["batch"]["queues"]
    first.update(queue)
    for key in [key for key, value in first.items() if value is None]:
        del first[key]
    return parse_blueprint(yaml.safe_dump(document), "ads.yaml")


def contexts(blueprint: LoadedBlueprint) -> dict[str, int]:
    """Return the longest request of each deployment."""
    [model] = build_plan(blueprint.blueprint).models
    return {
        each.name: process.engine.max_model_len
        for each in model.deployments
        for process in each.workers
        if process.engine
    }


def test_each_deployment_has_the_context_of_its_own_requests() -> None:
    """Red if long prompts raise the context of real time, or if the mean decides: 4 x 20,100 tokens."""
    # 4,000 + 4 x 20 = 4,080 and 30,000 + 200 = 30,200, up to a multiple of 1,024.
    assert contexts(loaded()) == {"live": 4096, "night": 30_720}


def test_without_deployments_all_ways_share_all_of_them() -> None:
    assert contexts(loaded(deployments=None)) == {"live": 30_720, "night": 30_720}


def test_a_queue_that_says_nothing_is_a_part_of_the_model_s_workload() -> None:
    """Red if an old file means something else."""
    blueprint = loaded(deployments=None, workload=None).blueprint
    [model] = blueprint.spec.models
    traffic = model_traffic(blueprint.spec, model)
    assert [way.label for way in traffic.ways] == ["real time"]
    assert (traffic.means.input_tokens, traffic.means.peak_requests_per_second) == (1000, 10)


def test_rates_are_those_of_each_way() -> None:
    blueprint = loaded().blueprint
    live, night = (resolve(blueprint, 0, index)[0].traffic for index in range(2))
    # 72,000 requests in the 10 hours of the deadline, if all jobs of the day come at once.
    assert (live.requests_per_second, night.requests_per_second) == (10, 2)
    assert night.means.input_tokens == 20_000


def test_a_queue_with_deployments_has_an_address_of_its_own() -> None:
    spec = loaded().blueprint.spec
    assert spec.batch is not None
    [model], [queue] = spec.models, spec.batch.queues
    assert own_deployments(spec, model) == ("live",)
    assert way_address(spec, queue) == "qwen--batch"
    assert further_routes(spec, model) == {"qwen--batch": ("night",)}


def test_a_queue_on_all_deployments_has_the_address_of_the_model() -> None:
    spec = loaded(deployments=["live", "night"]).blueprint.spec
    assert spec.batch is not None
    [model], [queue] = spec.models, spec.batch.queues
    assert own_deployments(spec, model) == ("live", "night")
    assert (way_address(spec, queue), further_routes(spec, model)) == ("qwen", {})


@pytest.mark.parametrize(("jobs", "severities"), [(4, []), (5, ["warning"])])
def test_further_addresses_are_rules_of_the_load_balancer(jobs: int, severities: list[str]) -> None:
    """Red if only models are counted: with the default quota, the 101st rule fails in a deployment."""
    blueprint = loaded().blueprint
    [model] = blueprint.spec.models
    job: dict[str, Any] = {"model": model.name, "deployments": ["night"]}
    changes = {
        "models": [model, *(model.model_copy(update={"name": f"m{number}"}) for number in range(94))],
        "streaming": [StreamingJob.model_construct(**job, name=f"j{number}") for number in range(jobs)],
    }
    spec = blueprint.spec.model_copy(update=changes)
    found = [*address_findings(blueprint.model_copy(update={"spec": spec}))]
    assert [each.severity for each in found] == severities
    assert all("got 95 models, and 6 further addresses" in each.message for each in found)


def test_the_plan_says_how_long_the_requests_of_each_way_are() -> None:
    """Red if a reader cannot tell a stated maximum from four times the mean."""
    document = yaml.safe_load(ADS)
    document["spec"]["models"][0]["workload"]["inputTokens"] = 1000
    del document["spec"]["batch"]["queues"][0]["deployments"]
    blueprint = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    summary = summarise(blueprint, build_plan(blueprint))
    lines = [text for label, text in MEMORY.in_short(summary) if label == Label.LONGEST]
    assert "(real time 4,080, four times the mean; queue 'nightly' 30,200)" in lines[0]


def test_a_deadline_is_reckoned_with_the_queue_s_own_requests() -> None:
    """Red if a job of 13,000-token prompts takes the time of 1,000-token ones, as in an earlier release."""

    def day_of(found: LoadedBlueprint) -> BatchDaySummary:
        [day] = summarise(found.blueprint, build_plan(found.blueprint))[BATCH_DAYS]
        return day

    lengths = {"inputTokens": {"mean": 13_000, "max": 16_000}, "outputTokens": {"mean": 100, "max": 200}}
    day, alone = day_of(loaded(workload=lengths)), day_of(loaded(workload=None))
    # Prompts of 20,000 tokens are longer than the latency profile.
    assert (day_of(loaded()).job_hours, day_of(loaded()).deadline_can_hold) == (None, None)
    assert day.job_hours is not None
    assert alone.job_hours is not None
    assert 2 < day.job_hours < 10
    assert alone.job_hours < day.job_hours / 10


def test_a_deadline_that_cannot_hold_is_not_called_unknown() -> None:
    """Red if prompts beyond the latency profile hide that even shorter ones take longer than the deadline."""

    def told(requests: int) -> tuple[BatchDaySummary, str, str, str]:
        found = loaded(load={"requestsPerDay": requests, "requestsPerJob": requests})
        summary = summarise(found.blueprint, build_plan(found.blueprint))
        warnings = " ".join(each.message for each in found.warnings)
        shown = " ".join(text for _, text in BATCH_DAYS.in_short(summary))
        return summary[BATCH_DAYS][0], notes(summary), shown, warnings

    # Nine workers that need 1.66 s for a prompt of 16,384 tokens complete 5.41 of them per second.
    day, note, shown, warnings = told(600_000)
    assert day.full_requests_per_second is day.job_hours is None
    assert day.most_requests_per_second == pytest.approx(5.41, abs=0.01)
    assert (day.deadline_can_hold, day.is_late, day.keeps_up) == (False, True, False)
    for text in (note, shown):
        assert "its deadline of 10 h cannot hold" in text
        assert "takes at least 30.8 h" in text
        assert "sends 6.94 requests per second, and it answers at most 5.41" in text
        assert "unknown" not in text
    assert "each at least 30.8 h of its 10 h" in shown
    assert "got 9, which serve at most 5.41 of the 16.7 requests per second at the peak" in warnings
    assert "whether these workers serve the peak" not in warnings
    day, note, shown, warnings = told(190_000)
    assert (day.deadline_can_hold, day.is_late, day.keeps_up) == (None, False, None)
    assert "can hold is unknown" in note
    assert "takes at least 9.8 h" in note
    assert "whether 10 h hold is unknown" in shown
    assert "whether these workers serve the peak" in warnings
    assert "at most" not in warnings


@pytest.mark.parametrize("prompt", [100, 1000, 8000, 16_000])
@pytest.mark.parametrize("answer", [1, 100])
def test_no_known_speed_is_above_what_is_never_exceeded(prompt: int, answer: int) -> None:
    """Red if the deadline of a queue that is fast enough is said not to hold."""
    lengths = {"inputTokens": prompt, "outputTokens": answer}
    resolved = resolve(loaded(workload=lengths).blueprint, 0, 1)[0]
    capacity, most = role_capacity(resolved), most_requests_per_second(resolved)
    assert capacity is not None
    assert most is not None
    assert capacity.full_requests_per_second <= most * 1.000001
    # A first token is all of an answer of one token, and little is left to compute.
    assert answer > 1 or capacity.full_requests_per_second > most / 2


def queues(peak: float, deadline: int = 10, **others: dict[str, Any]) -> PlanSummary:
    """Return the plan of 10,000-token requests beside real time on one deployment, and of other queues."""
    document = yaml.safe_load(ADS)
    model, batch = document["spec"]["models"][0], document["spec"]["batch"]
    del model["deployments"][0]
    model["workload"]["peakRequestsPerSecond"] = peak
    first = batch["queues"][0]
    del first["deployments"]
    first["deadlineHours"] = deadline
    first["workload"] = {"inputTokens": 10_000, "outputTokens": 100}
    first["load"] = {"requestsPerDay": 400_000, "requestsPerJob": 10_000}
    batch["queues"] += [{**first, "name": name, **other} for name, other in others.items()]
    blueprint = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    return summarise(blueprint, build_plan(blueprint))


def notes(summary: PlanSummary) -> str:
    """Return the sentences below the table of days."""
    return " ".join(batch_days(summary).notes)


def test_real_time_that_leaves_no_time_ends_no_job() -> None:
    """Red if the plan divides by the rate of nothing, or takes it for time enough."""
    summary = queues(500)
    [day] = summary[BATCH_DAYS]
    assert (day.planned_requests_per_second, day.planned_job_hours) == (0.0, None)
    assert (day.is_late, day.keeps_up) == (True, False)
    assert "Beside other requests, it is not finished within 100 days" in notes(summary)


def test_batch_keeps_up_only_in_the_time_that_real_time_leaves() -> None:
    """Red if 4.63 requests a second are compared with the 6.81 of workers that answer nothing else."""
    summary = queues(40)
    [day] = summary[BATCH_DAYS]
    assert day.full_requests_per_second is not None
    assert day.requests_per_second < day.full_requests_per_second
    assert day.keeps_up is False
    assert "qwen does not keep up with batch" in notes(summary)
    assert "Its deadline of 10 h does not hold" in notes(summary)
    assert "deadline of 10 h holds" not in notes(summary)


def test_queues_of_unlike_lengths_are_judged_by_their_time() -> None:
    """Red if rates are summed: 4.6 long and 11.6 short requests are more than 6.8 long ones, but take 0.8 of
    the time."""
    short = {"workload": {"inputTokens": 500, "outputTokens": 5}, "load": {"requestsPerDay": 1_000_000}}
    days = queues(1, short=short)[BATCH_DAYS]
    assert [day.keeps_up for day in days] == [True, True]
    assert not any(day.is_late for day in days)
    more = {**short, "load": {"requestsPerDay": 12_000_000}}
    assert [day.keeps_up for day in queues(1, short=more)[BATCH_DAYS]] == [False, False]


def test_a_higher_peak_is_no_advice_for_a_late_queue() -> None:
    """Red if the plan advises more requests in real time, which leave the queue less."""
    summary = queues(40, deadline=1)
    assert summary[BATCH_DAYS][0].is_late
    assert "Add replicas, or raise the deadline." in notes(summary)
    assert "Raise the peak" not in notes(summary)


def test_a_queue_without_a_load_has_no_rate() -> None:
    """Red if '0.000000001 of 0.000000001 requests/s' is printed, and a price from it."""
    lengths = {"inputTokens": 10_000, "outputTokens": 100}
    blueprint = loaded(load=None, workload=lengths).blueprint
    summary = summarise(blueprint, build_plan(blueprint))
    assert [each.deployment for each in summary[TOKEN_PRICES]] == ["live"]
    assert list(unknown_speeds(summary)) == [("its queues state no 'load'", "qwen/night")]


def test_the_deadline_of_the_documented_example_is_known() -> None:
    """Red if the prompts of docs/serving.md are longer than the latency profile."""
    page = (Path(__file__).parents[3] / "docs/serving.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## Short and long requests on one model\n")
    shown = [line for line in section.partition("\n| ")[0].splitlines() if line.startswith("    ")]
    document = yaml.safe_load(ADS)
    document["spec"].update(yaml.safe_load("\n".join(shown)))
    blueprint = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    [day] = summarise(blueprint, build_plan(blueprint))[BATCH_DAYS]
    assert (day.deadline_can_hold, day.is_late, day.keeps_up) == (True, False, True)


def with_arguments(arguments: str) -> str:
    """Return the blueprint's text with arguments of the engine."""
    return ADS.replace(
        "    deployments:\n", f"    engine: {{vllm: {{args: {arguments}}}}}\n    deployments:\n", 1
    )


def test_an_argument_below_a_stated_maximum_is_an_error() -> None:
    """Red if an engine would refuse prompts that the file announces."""
    with pytest.raises(BlueprintError, match="requests of queue 'nightly' have up to 30200 tokens"):
        parse_blueprint(with_arguments("{max-model-len: 8192}"), "ads.yaml")


def test_an_argument_below_four_times_the_mean_is_a_warning() -> None:
    document = yaml.safe_load(ADS)
    del document["spec"]["batch"], document["spec"]["teams"]
    [model] = document["spec"]["models"]
    model["workload"]["inputTokens"] = 1000
    model["engine"] = {"vllm": {"args": {"max-model-len": 2048}}}
    warnings = [each.message for each in parse_blueprint(yaml.safe_dump(document), "ads.yaml").warnings]
    assert [each for each in warnings if "may have 4080, four times the mean" in each]


def test_a_stated_maximum_must_fit_the_cache() -> None:
    """Red if the engine starts with a shorter context than the file states, and only warns."""
    with pytest.raises(BlueprintError, match="but the longest request has 30200"):
        parse_blueprint(with_arguments("{gpu-memory-utilization: 0.5}"), "ads.yaml")


def test_long_prompts_may_not_hold_up_the_tokens_of_others() -> None:
    """Red if a queue shares a deployment whose objective its chunks exceed."""
    text = (
        ADS.replace("      deployments: [night]\n", "")
        .replace("max: 4000}", "max: 1000}")
        .replace("    deployments:\n", "    objectives: {timePerOutputTokenP90Ms: 60}\n    deployments:\n", 1)
    )
    with pytest.raises(BlueprintError, match=r"in chunks of 2,048, which take .* ms .* objective is 60 ms"):
        parse_blueprint(text, "ads.yaml")


@pytest.mark.parametrize(
    ("objectives", "message"),
    [
        ({"timeToFirstTokenMs": {"p95": 1600}}, "at least 1,665 ms .* for their first token, .* is 1600 ms"),
        # About 0.5 s alone, and 1.7 s behind one prompt of 16,384 tokens, where the profile ends.
        ({"requestMs": {"p99": 1900}}, "at least 1,665 ms .* alone, wait so long, .* is 1900 ms"),
        ({"timeToFirstTokenMs": {"p95": 1700}, "requestMs": {"p99": 9000}}, ""),
    ],
)
def test_long_prompts_may_not_hold_up_first_tokens_and_whole_requests(
    objectives: dict[str, Any], message: str
) -> None:
    """Red if a mix is judged by the objective per token alone."""
    document = yaml.safe_load(ADS)
    document["spec"]["models"][0]["objectives"] = objectives
    del document["spec"]["batch"]["queues"][0]["deployments"]
    text = yaml.safe_dump(document)
    if not message:
        parse_blueprint(text, "ads.yaml")
        return
    with pytest.raises(
        BlueprintError, match=rf"queues\[0\].workload: a mean prompt of its 20,000 .*{message}"
    ):
        parse_blueprint(text, "ads.yaml")


def test_an_objective_per_token_is_met_by_answers_of_one_token() -> None:
    """Red if the whole request is judged as the time of a token that never comes."""
    document = yaml.safe_load(ADS)
    model = document["spec"]["models"][0]
    model["workload"]["outputTokens"] = 1
    model["objectives"] = {"timePerOutputTokenMs": {"p90": 1}}
    found = parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    assert any("answers have one token, after which none comes" in str(each) for each in found.warnings)
    summary = summarise(found.blueprint, build_plan(found.blueprint))
    [check] = summary[OBJECTIVES]
    assert (check.planned_ms, check.is_met, check.is_missed) == (0.0, True, None)
    assert not [text for label, text in OBJECTIVES.in_short(summary) if label == Label.WARNINGS]
    carries = [text for label, text in TOKEN_PRICES.in_short(summary) if label == Label.CARRIES]
    assert "per output token" not in carries[0].partition("qwen/night")[0]


def test_a_file_may_state_all_of_the_context() -> None:
    """Red if four times a mean answer is held against an argument that is the whole context already."""
    document = yaml.safe_load(ADS)
    model, [queue] = document["spec"]["models"][0], document["spec"]["batch"]["queues"]
    queue["workload"] = {"inputTokens": {"mean": 6000, "max": 40_900}, "outputTokens": 20}
    model["engine"] = {"vllm": {"args": {"max-model-len": 40_960}}}
    parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    model["engine"] = {"vllm": {"args": {"max-model-len": 40_919}}}
    expected = "have up to 40920 tokens: a prompt of 40900 and an answer of 20"
    with pytest.raises(BlueprintError, match=expected):
        parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    del model["engine"]
    # 40,900 + 80 is more than the context of 40,960, which is what the engine gets.
    assert contexts(parse_blueprint(yaml.safe_dump(document), "ads.yaml"))["night"] == 40_960


def test_the_stated_images_of_prompts_decide_what_a_worker_must_accept() -> None:
    """Red if `media.imagesPerRequest` decides, although the file says that no prompt has so many."""
    document = yaml.safe_load(ADS)
    model = document["spec"]["models"][0]
    del document["spec"]["batch"], document["spec"]["teams"]
    model["weights"]["huggingFace"] = "Qwen/Qwen3-VL-8B-Instruct"
    model["stack"] = {"llmD": {}}
    model["media"] = {"imagesPerRequest": 50, "tokensPerImage": 256, "allowedDomains": ["images.example.com"]}
    with pytest.raises(BlueprintError, match="got 50 images of 256 tokens, 12800 in total"):
        parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    model["workload"]["promptImages"] = {"mean": 2, "max": 8}
    parse_blueprint(yaml.safe_dump(document), "ads.yaml")


def test_a_deployment_without_workers_serves_nothing() -> None:
    """Red if requests are divided by its accelerators, of which it has none."""
    blueprint = loaded(deployments=None).blueprint
    [model] = blueprint.spec.models
    empty = model.deployments[0].model_copy(update={"aggregated": None})
    alone = model.model_copy(update={"deployments": [empty]})
    assert deployment_traffic(blueprint.spec, alone, empty).ways == ()


def test_an_assumed_longest_request_is_that_of_the_longest_way_in() -> None:
    """Red if the warning multiplies the mean of all ways in by four."""
    document = yaml.safe_load(ADS)
    model, [queue] = document["spec"]["models"][0], document["spec"]["batch"]["queues"]
    model["workload"]["inputTokens"] = 100
    queue["workload"] = {"inputTokens": 5000, "outputTokens": 100}
    del queue["deployments"]
    model["engine"] = {"vllm": {"args": {"max-model-len": 8192}}}
    warnings = [str(each) for each in parse_blueprint(yaml.safe_dump(document), "ads.yaml").warnings]
    assert any("may have 20400, four times the mean" in each for each in warnings)


def test_running_requests_are_weighted_by_their_time() -> None:
    """Red if ten short requests a second hide two long ones, which fill the cache."""
    lengths = {"inputTokens": 20_000, "outputTokens": 100}
    text = ADS.replace("{mean: 1000, max: 4000}", "1000")
    document = yaml.safe_load(text)
    [queue] = document["spec"]["batch"]["queues"]
    queue["workload"] = lengths
    del queue["deployments"]
    blueprint = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    [night] = resolve(blueprint, 0, 1)
    held = held_tokens([way.means for way in night.traffic.ways], night.objectives)
    # Of 9/11 of 10 and 2 requests a second, 1.95 and 5.95 seconds long: 15.95 of 1,020 and 9.74 of 20,100
    # tokens. Their variance is that between both ways: 0.621 * 0.379 * 19,080**2.
    assert held.mean == pytest.approx(8252, rel=1e-3)
    assert held.variance == pytest.approx(0.6209 * 0.3791 * 19_080**2, rel=1e-3)


@pytest.mark.parametrize(
    ("objectives", "decides"),
    [
        ({"requestMs": {"p99": 5000}}, True),
        ({"timeToFirstTokenMs": {"p95": 500}}, True),
        ({"timeToFirstTokenP90Ms": 500}, False),
        ({}, False),
    ],
)
def test_a_deadline_decides_what_a_worker_carries(objectives: dict[str, Any], *, decides: bool) -> None:
    """Red if only `objectives` limit the requests at once, or if the targets of older files change."""
    blueprint = load_blueprint("real-time").blueprint
    [model] = blueprint.spec.models
    [workers] = resolve(blueprint, 0, 0)
    stated = {"objectives": Objectives.model_validate(objectives)}
    short = replace(workers, model=model.model_copy(update=stated))
    late = replace(workers, model=model.model_copy(update={"real_time": None, **stated}))
    assert (worker_load(short).requests < worker_load(late).requests) == decides
    assert ("the deadline of 300 ms" in worker_load(short).reason) == decides
    capacity, without = role_capacity(short), role_capacity(late)
    assert capacity is not None
    assert without is not None
    assert (capacity.objective_requests_per_second < without.objective_requests_per_second) == decides


def elastic(*deployments: str) -> ShiftConfiguration:
    """Return what a shift moves with elastic workers in real time, and a queue on these deployments."""
    document = yaml.safe_load(ADS)
    document["spec"].update(observability={}, capacityShift={"action": "shift"})
    live = document["spec"]["models"][0]["deployments"][0]["aggregated"]
    live.update(replicas={"min": 2, "max": 4}, scaledBy={"load": {}})
    [queue] = document["spec"]["batch"]["queues"]
    queue["deployments"] = [*deployments]
    blueprint = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    found = shift_configuration_of(blueprint, build_plan(blueprint))
    assert found is not None
    assert ShiftConfiguration.from_json(found.as_json()) == found
    return found


def test_batch_has_places_only_in_deployments_that_a_queue_uses() -> None:
    """Red if batch's ceiling follows the load of workers that batch never uses."""
    apart, shared = elastic("night"), elastic("live", "night")
    assert apart.batch_releases == {"qwen": ("qwen-night",)}
    assert apart.batch_places == {}
    assert apart.batch_share(apart.workers[0]) == 0
    assert shared.batch_releases == {"qwen": ("qwen-live", "qwen-night")}
    assert shared.batch_share(shared.workers[0]) == shared.batch_places["qwen"] > 0


def test_objectives_do_not_hold_where_nobody_waits() -> None:
    """Red if batch of its own is warned of, missed in the plan, or counted in the alarm of real time."""
    document = yaml.safe_load(ADS)
    [model] = document["spec"]["models"]
    model["weights"]["revision"] = "b968826d9c46dd6066d109eabc6255188de91218"
    model["objectives"] = {"timeToFirstTokenMs": {"p95": 1}, "requestMs": {"p99": 5000}}
    document["spec"]["batch"]["queues"][0]["workload"]["inputTokens"] = {"mean": 6000, "max": 24000}
    found = parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    text = "\n".join(map(str, serving_findings(found.blueprint)))
    assert "of deployment 'live' takes" in text
    assert "deployment 'night'" not in text
    [night] = resolve(found.blueprint, 0, 1)
    assert worker_load(night).reason == "at its highest rate (simulated)"
    slow = {"requestMs": {"p99": 700}, "timePerOutputTokenMs": {"p90": 20}}
    hurried = replace(
        night, model=night.model.model_copy(update={"objectives": Objectives.model_validate(slow)})
    )
    capacity = role_capacity(hurried)
    assert capacity is not None
    assert capacity.objective_requests_per_second == capacity.full_requests_per_second
    plan = build_plan(found.blueprint)
    planned = summarise(found.blueprint, plan)[OBJECTIVES]
    assert {each.deployment for each in planned} == {"live"}
    late = [
        each for each in platform_rules("ads", plan, found.blueprint.spec) if "_late_ratio" in each.record
    ]
    assert {each.record for each in late} >= {"serving_first_token_late_ratio_p95_1h"}
    assert all('release!~"qwen-night"' in each.expression for each in late)
    del model["workload"]
    document["spec"]["batch"]["queues"][0]["deployments"] = ["live", "night"]
    alone = parse_blueprint(yaml.safe_dump(document), "ads.yaml").blueprint
    assert "even with no other request" not in "\n".join(map(str, serving_findings(alone)))
    assert summarise(alone, build_plan(alone))[OBJECTIVES] == ()
    assert not [
        each for each in platform_rules("ads", build_plan(alone), alone.spec) if "_late_" in each.record
    ]


def test_batch_alone_is_not_held_to_how_long_real_time_may_take() -> None:
    """Red if Little's law with real time's objectives refuses workers of a queue: it asked for 238."""
    document = yaml.safe_load(ADS)
    [model] = document["spec"]["models"]
    model["objectives"] = {"timeToFirstTokenMs": {"p99": 20_000}}
    night = model["deployments"][1]["aggregated"]
    night["replicas"] = 1
    parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    model["workload"]["peakRequestsPerSecond"] = 1000
    live = model["deployments"][0]["aggregated"]
    live.update(replicas={"min": 1, "max": 2}, scaledBy={"load": {}})
    with pytest.raises(BlueprintError) as refused:
        parse_blueprint(yaml.safe_dump(document), "ads.yaml")
    assert "deployments[0].aggregated.replicas.max: got 2, but at the peak" in str(refused.value)
    assert "set replicas.max: " in str(refused.value)
    assert "deployments[1]" not in str(refused.value)


def test_workers_accept_the_longest_prompt_and_answer_of_a_streaming_job() -> None:
    """Red if `max-model-len` follows four times a small mean, though the job may send more."""
    job = load_blueprint("streaming-g6e").blueprint
    [first] = job.spec.streaming
    lengths = StreamedRequests(input_tokens=10, output_tokens=2)
    apart = first.model_copy(update={"workload": lengths})
    spec = job.spec.model_copy(update={"streaming": [apart]})
    way = own_part(apart, model_traffic(spec, spec.models[0]))
    assert way is not None
    assert (way.longest_input, way.longest_output) == (first.prompt.max_input_tokens, first.answer.max_tokens)


@pytest.mark.parametrize(
    ("rates", "hours"),
    [
        # 3,600 requests at 1 a second.
        ([1.0] * 24, 1.0),
        # Nothing in the first 12 hours of the day: a job that begins with them waits.
        ([0.0] * 12 + [1.0] * 12, 13.0),
        ([0.0] * 24, float("inf")),
    ],
)
def test_a_job_that_begins_at_the_worst_hour(rates: list[float], hours: float) -> None:
    assert longest_hours(3600, rates) == pytest.approx(hours)
