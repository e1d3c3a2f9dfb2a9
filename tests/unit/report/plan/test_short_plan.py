"""The plan in about ten lines."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.picture.scene import Scene
from inference_blueprints.report.plan.section import PlanSummary
from inference_blueprints.report.plan.sections import SECTIONS
from inference_blueprints.report.plan.sections.budgets import BUDGETS
from inference_blueprints.report.plan.sections.cost import PLATFORM_COST
from inference_blueprints.report.plan.sections.memory import lengths_by_way
from inference_blueprints.report.plan.short_plan import headline, print_short_plan, warnings_of
from inference_blueprints.report.plan.summary import as_dict, chosen_sections, summarise
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Spec
from inference_contracts.errors import Problem, UserError
from tests.unit.plan_samples import ChangedScene, shipped_sample

#: The most rows of a shipped blueprint at each width. quickstart-g6e at 80 columns has a test of its own.
_MOST_ROWS = {60: 39, 80: 25, 120: 21}
#: Columns of the labels.
_MARGIN = 11


def _printed(summary: PlanSummary, name: str, width: int, warnings: list[Problem] | None = None) -> str:
    stream = io.StringIO()
    found = [*(load_blueprint(name).warnings if warnings is None else warnings), *warnings_of(summary, name)]
    print_short_plan(summary, Console(file=stream, width=width), name, found)
    return stream.getvalue()


def _summary(scene: Scene) -> PlanSummary:
    return summarise(scene.blueprint, scene.plan)


def _warnings(scene: Scene) -> str:
    return "\n".join(map(str, warnings_of(_summary(scene), "mine.yaml")))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("quickstart-g6e", "quickstart in us-west-2: 2 x l40s on g6e.2xlarge, at least 4,037 USD a month"),
        (
            "elastic-g6e",
            "elastic in us-west-2: 2 to 12 x l40s on g6e.2xlarge, at least 4,059 to 20,600 USD a month",
        ),
        (
            "capacity-block-p5",
            "capacity-block in us-west-2: 14 x h100 on p5.48xlarge (capacityBlock), at least 734 USD a month "
            "without the nodes of h100",
        ),
    ],
)
def test_the_first_line_has_devices_and_cost(name: str, line: str) -> None:
    """A sum without the price of the nodes would read as the price of the platform."""
    assert headline(_summary(shipped_sample(name))) == line


@pytest.mark.parametrize("name", ["ads-reference", "elastic-g6e", "quickstart-g6e"])
def test_the_parts_of_a_month_add_up_to_the_first_line(name: str) -> None:
    """Red if the first line has a range, and its parts do not say that they are the most."""
    summary = _summary(shipped_sample(name))
    printed = " ".join(_printed(summary, name, 1000).split())
    parts = re.search(r"; a month( at most,)?[^;]*: nodes ([\d,]+), all else ([\d,]+)", printed)
    total = re.search(r"(?:([\d,]+) to )?([\d,]+) USD a month", headline(summary))
    assert parts is not None
    assert total is not None
    assert bool(parts[1]) == bool(total[1])
    nodes, others, most = (int(found.replace(",", "")) for found in (parts[2], parts[3], total[2]))
    assert nodes + others == pytest.approx(most, abs=1)


def test_the_quickstart_fits_sixteen_rows_of_a_terminal() -> None:
    assert len(_printed(_summary(shipped_sample("quickstart-g6e")), "quickstart-g6e", 80).splitlines()) <= 16


@pytest.mark.parametrize("name", shipped())
def test_no_line_is_too_wide_and_no_word_is_cut(name: str) -> None:
    """A section that writes a paragraph, a word that is split over two rows, or a number without its unit."""
    scene = shipped_sample(name)
    summary = _summary(scene)
    words = {width: _printed(summary, name, width).split() for width in (*_MOST_ROWS, 1000)}
    for width, most in _MOST_ROWS.items():
        rows = _printed(summary, name, width).splitlines()
        assert max(map(len, rows)) <= width
        assert len(rows) <= most * len(scene.plan.models)
        if max(map(len, words[1000])) <= width - _MARGIN:  # longer ones are folded: addresses of pages
            assert words[width] == words[1000]
        assert re.findall(r"\d\n +(?:%|GB|USD|h|s|x)\s|\d x\n", "\n".join(rows)) == []


def test_what_is_longer_than_a_line_is_folded(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec["models"][0].update(name="a-model-with-a-name-of-forty-characters0"))
    text = _printed(_summary(scene), "quickstart-g6e", 40)
    assert max(map(len, text.splitlines())) <= 40
    assert "a-model-with-a-name-of-forty-characters0/main" in "".join(text.split())


#: Which part of a blueprint a word shows.
_WORDS: dict[str, Callable[[Spec], Any]] = {
    "queue ": lambda spec: spec.batch and any(queue.load for queue in spec.batch.queues),
    "batch": lambda spec: spec.batch,
    "calls/s": lambda spec: spec.streaming,
    "Kafka": lambda spec: spec.kafka,
    "Valkey": lambda spec: spec.signal_store,
    "ECS": lambda spec: spec.cluster.ecs,
    "EKS": lambda spec: spec.cluster.eks,
    "Neuron": lambda spec: any(model.engine.vllm_neuron for model in spec.models),
    "images/s": lambda spec: any(own_means(model).images for model in spec.models),
    "capacityBlock": lambda spec: any(pool.purchase.capacity_block for pool in spec.pools),
    "reservation": lambda spec: any(pool.purchase.reservation for pool in spec.pools),
    "spot": lambda spec: any(pool.purchase.spot for pool in spec.pools),
    "capacity shift": lambda spec: spec.capacity_shift,
    "broken nodes": lambda spec: spec.gpu_health,
    "GPU health": lambda spec: spec.gpu_health,
    "observability": lambda spec: spec.observability,
    "teams": lambda spec: spec.teams,
    "KV cache": lambda spec: any(model.kv_cache for model in spec.models),
    "stated, ": lambda spec: any(
        model.objectives.time_to_first_token_p90_ms and not model.engine.llama_cpp for model in spec.models
    ),
    "prefill": lambda spec: any(
        deployment.disaggregated for model in spec.models for deployment in model.deployments
    ),
    "tokens of prompt": lambda spec: spec.models,
}


def test_every_part_of_a_blueprint_shows_by_a_word() -> None:
    """A section of the blueprint that the short plan forgets."""
    seen = set()
    for name in shipped():
        scene = shipped_sample(name)
        text = _printed(_summary(scene), name, 1000)
        for word, used in _WORDS.items():
            if used(scene.blueprint.spec):
                assert word in text, name
                seen.add(word)
    assert seen == set(_WORDS)


def _with_batch(requests: int, job: int, deadline_hours: float) -> Callable[[dict[str, Any]], Any]:
    """Return a change that adds a queue with a load, and a team that can pay for it."""
    rates = {"usdPerMillionInputTokens": 0.001, "usdPerMillionOutputTokens": 0}
    load = {"requestsPerDay": requests, "requestsPerJob": job}
    queue = {"name": "nightly", "model": "qwen3-8b", "deadlineHours": deadline_hours, "rates": rates}
    team = {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/Ads"]}

    def change(spec: dict[str, Any]) -> None:
        spec["teams"] = [{**team, "monthlyBudgetUsd": 100_000}]
        spec["batch"] = {"workers": {"max": 100}, "queues": [{**queue, "load": load}]}

    return change


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        (
            lambda spec: spec["models"][0]["workload"].update(peakRequestsPerSecond=200),
            "of the 200 requests per second at peak (simulated)",
        ),
        (
            lambda spec: spec["models"][0].update(objectives={"timePerOutputTokenP90Ms": 5}),
            "ms planned, 5 ms wanted",
        ),
        (
            lambda spec: spec["models"][0].update(objectives={"timeToFirstTokenP90Ms": 100}),
            "ms without any other request, 100 ms wanted",
        ),
        (_with_batch(20_000_000, 50_000_000, 24), "cannot hold: add replicas"),
        (_with_batch(150_000, 150_000, 20), "20.8 h at the 2 requests per second of the stated peak"),
        (lambda spec: spec["pools"][0].update(nodes={"min": 4, "max": 4}), "hold no worker"),
        (
            lambda spec: spec["pools"][0].update(purchase={"capacityBlock": {"id": "cr-0a1b2c3d4e5f60718"}}),
            "leaves out the nodes of pool l40s",
        ),
    ],
)
def test_what_reads_like_good_news_and_is_none_is_a_warning(
    changed: ChangedScene, change: Callable[[dict[str, Any]], Any], warning: str
) -> None:
    """A plan that serves a part of the stated load ended with a footnote, and without a warning."""
    scene = changed(change)
    assert warning in _warnings(scene)
    text = " ".join(_printed(_summary(scene), "mine.yaml", 80, []).split())
    assert warning in text
    assert "warnings none" not in text


def test_budgets_that_limit_something_else_than_they_read_like_are_a_warning(changed: ChangedScene) -> None:
    """8,000 USD a month beside a plan of 14,475, and a load that its own budget refuses on the third day."""
    queue = _with_batch(100_000, 50_000, 24)

    def charged(spec: dict[str, Any]) -> None:
        queue(spec)
        spec["batch"]["queues"][0]["rates"] = {
            "usdPerMillionInputTokens": 0.1,
            "usdPerMillionOutputTokens": 1,
        }
        spec["teams"][0]["monthlyBudgetUsd"] = 1500

    # 100,000 requests * (3,000 * 0.1 + 200 * 1) / 1,000,000 USD = 50 USD a day, and 730 / 24 days.
    summary = _summary(changed(charged))
    budgets = summary[BUDGETS]
    assert budgets is not None
    assert budgets.load_usd_per_month == pytest.approx(50 * 730 / 24, abs=0.01)
    assert (budgets.covers_load, budgets.covers_platform) == (False, False)
    warnings = _warnings(changed(charged))
    least = f"{summary[PLATFORM_COST].usd_per_month_least:,.0f}"
    assert f"Budgets of 1,500 USD a month limit jobs, not the platform's {least}." in warnings
    assert "They refuse a part of the load, which is charged 1,521" in warnings
    assert "budgets" not in _warnings(changed(queue))


def test_many_devices_lead_to_the_plan_of_a_fleet(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec["pools"][0]["nodes"].update(max=2000))
    text = _printed(_summary(scene), "quickstart-g6e", 120)
    assert "--fleet 2000 splits it" in text
    assert "at most 2,000 nodes in pool l40s" in text


def test_a_plan_without_faults_has_no_warning_of_its_own(changed: ChangedScene) -> None:
    scene = changed(lambda spec: spec)
    assert _warnings(scene) == ""
    assert "warnings   none" in _printed(_summary(scene), "quickstart-g6e", 80, [])


@pytest.mark.parametrize(
    ("path", "message", "line"),
    [
        (
            "spec.models[0].deployments[0].aggregated.replicas",
            "got 30, which serve 2",
            "replicas: got 30, whi",
        ),
        (
            "spec.models[0].weights.tokenSecretArn",
            "is missing: it is gated",
            "tokenSecretArn: is missing",
        ),
        ("spec.network.sourceCidrs[1]", "0.0.0.0/0 admits everyone", "line 9: 0.0.0.0/0 admits everyone"),
    ],
)
def test_a_warning_about_a_value_names_its_key(path: str, message: str, line: str) -> None:
    """Red if the plan says "got 30" and not of what."""
    warning = Problem("a.yaml", 9, 1, path, message, "warning")
    assert line in _printed(_summary(shipped_sample("quickstart-g6e")), "a.yaml", 120, [warning])


def test_quotas_of_processors_say_nothing_of_accelerators() -> None:
    """Red if a fleet of Graviton is told that new accounts have 0 for accelerators."""

    def quotas(name: str) -> str:
        text = " ".join(_printed(_summary(shipped_sample(name)), "a.yaml", 120, []).split())
        return text.partition("vCPU quotas of EC2: ")[2].partition(" read on ")[0]

    assert quotas("graviton-llama-cpp").startswith("Standard ")
    assert "accelerators" not in quotas("graviton-llama-cpp")
    assert "new accounts have 0 for accelerators" in quotas("quickstart-g6e")


def test_warnings_of_a_file_have_their_line_and_are_counted_from_the_fifth_on() -> None:
    file = [
        Problem("a.yaml", line, 1, "spec", f"'key: {line}' is old; remove it", "warning")
        for line in range(1, 8)
    ]
    text = _printed(_summary(shipped_sample("quickstart-g6e")), "a.yaml", 80, file)
    assert "line 4: 'key: 4' is old\n" in text
    assert "line 5" not in text
    assert "and 3 more: blueprints validate a.yaml" in text


def test_sections_are_chosen_by_the_keys_of_the_json() -> None:
    summary = _summary(shipped_sample("quickstart-g6e"))
    whole = as_dict(summary)
    for section in SECTIONS:
        chosen = as_dict(summary, chosen_sections(section.key))
        assert chosen == {key: whole[key] for key in ("name", "region", section.key)}
    assert list(as_dict(summary, chosen_sections("cost, pools"))) == [
        "name",
        "region",
        "pools",
        "platformCost",
    ]
    assert "support" in as_dict(summary, chosen_sections("support"))
    for wrong in ("costs", ""):
        with pytest.raises(UserError, match=r"allowed are addresses, batchDays, .*, cost, "):
            chosen_sections(wrong)


def test_the_longest_request_is_that_of_the_engine(changed: ChangedScene) -> None:
    """A prompt above it is refused, which the plan did not say."""
    scene = changed(lambda spec: spec)
    engine = scene.plan.models[0].deployments[0].processes[1].engine
    assert engine is not None
    (memory,) = as_dict(_summary(scene))["memory"]
    assert memory["longestRequestTokens"] == engine.max_model_len
    assert f"longest    {engine.max_model_len:,} tokens" in _printed(_summary(scene), "quickstart-g6e", 80)


def _long_prompts_at_night(spec: dict[str, Any]) -> None:
    """Give a queue long prompts with images, and a deployment of its own."""
    [model] = spec["models"]
    [main] = model["deployments"]
    model["workload"]["inputTokens"] = {"mean": 1000, "max": 4000}
    model["media"] = {"imagesPerRequest": 4, "tokensPerImage": 1000, "allowedDomains": ["a.example"]}
    model["deployments"].append({**main, "name": "night"})
    spec["pools"][0]["nodes"]["max"] = 9
    arn = "arn:aws:iam::111122223333:role/ads"
    spec["teams"] = [{"name": "ads", "principals": [arn], "monthlyBudgetUsd": 10}]
    workload = {
        "inputTokens": {"mean": 20000, "max": 30000},
        "outputTokens": 100,
        "promptImages": {"mean": 1.5, "max": 4},
    }
    rates = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 0.4}
    queue = {"name": "nightly", "model": model["name"], "deployments": ["night"], "workload": workload}
    spec["batch"] = {"queues": [{**queue, "rates": rates, "load": {"requestsPerDay": 1000}}]}


def test_lengths_and_images_are_shown_by_way_in(changed: ChangedScene) -> None:
    """`promptImages` was checked and shown nowhere; only the longest request of a way in was."""
    summary = _summary(changed(_long_prompts_at_night))
    short = " ".join(_printed(summary, "night.yaml", 80, []).split())
    assert "queue 'nightly' 30,400, images of a prompt 1.5, at most 4" in short
    assert "price qwen3-8b/" in short, "the other deployment's price is unknown"
    live, night = as_dict(summary)["memory"]
    assert [each["way"] for each in live["longestByWay"]] == ["real time"]
    assert live["longestByWay"][0]["promptImagesMax"] is None
    assert night["longestByWay"][0]["promptImagesMean"] == 1.5
    assert night["longestByWay"][0]["inputTokensMean"] == 20_000
    table = lengths_by_way(summary)
    assert table.rows[1][1:] == (
        "queue 'nightly'",
        "20,000",
        "30,000",
        "100",
        "400",
        "1.5, at most 4",
    )
    assert lengths_by_way(_summary(changed(lambda spec: spec))).rows == ()
