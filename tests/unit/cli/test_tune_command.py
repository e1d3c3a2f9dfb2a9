"""`blueprints tune`: what it prints, writes and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.cli import added_commands
from inference_blueprints.measure.simulation import offline_replay
from inference_blueprints.report.plan.sections.objectives import read_replays
from inference_blueprints.spec.types import LATENCY_NAMES
from inference_contracts.errors import UserError
from tests.unit.command_run import Ran, blueprints

BLUEPRINT = """\
# Why this platform is as it is.
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: tuned}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    engine: {vllm: {args: {seed: 7}}}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6}
    objectives: {timeToFirstTokenP90Ms: 1000, timePerOutputTokenP90Ms: 60}
    deployments:
    - name: main
      aggregated: {pool: l40s, replicas: 1, tensorParallelSize: 1}  # to be tuned
"""

RunTune = Callable[..., Ran]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Replays that the commands of this file share: all but a few ask for the same ones."""
    folder: Path = tmp_path_factory.mktemp("cache")
    return folder


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> RunTune:
    (tmp_path / "platform.yaml").write_text(BLUEPRINT, encoding="utf-8")

    def start(*arguments: str) -> Ran:
        return blueprints("tune", *arguments, folder=tmp_path, XDG_CACHE_HOME=str(cache), COLUMNS="80")

    return start


def test_the_choice_is_explained_and_said_to_be_simulated(run: RunTune) -> None:
    result = run("platform.yaml")
    assert result.code == 0, result.err
    assert "All figures are simulated" in result.out
    assert "the lowest cost that meets the objectives" in " ".join(result.out.split())
    assert "seed" in result.out, "an argument that the replay knows nothing of"


def test_json_is_for_machines(run: RunTune) -> None:
    result = run("platform.yaml", "--output", "json")
    document = json.loads(result.out)
    best = document["best"]
    assert document["simulated"] is True
    assert best["keepsObjectives"]
    assert best in document["configurations"]
    assert best["usdPerMillionTokens"] == min(
        each["usdPerMillionTokens"] for each in document["configurations"] if each["keepsObjectives"]
    )


def test_write_changes_the_deployments_alone_and_plan_shows_the_price(run: RunTune, tmp_path: Path) -> None:
    document = json.loads(run("platform.yaml", "--output", "json", "--write").out)
    [deployment] = document["best"]["deployments"]
    replicas = deployment["aggregated"]["replicas"]
    written = (tmp_path / "platform.yaml").read_text(encoding="utf-8")
    assert replicas > 1
    assert written == BLUEPRINT.replace("replicas: 1", f"replicas: {replicas}")
    planned = blueprints("plan", "platform.yaml", "--output", "json", folder=tmp_path)
    [price] = json.loads(planned.out)["tokenPrices"]
    assert price["usdPerMillionTokens"] == pytest.approx(document["best"]["usdPerMillionTokens"])


def test_a_recorded_replay_is_what_plan_shows_until_the_file_changes(run: RunTune, tmp_path: Path) -> None:
    """`plan` said "not replayed" of a file that was replayed, and nothing kept when and with what."""
    text = BLUEPRINT.replace("replicas: 1", "replicas: 3").replace(
        "timePerOutputTokenP90Ms: 60", "timePerOutputTokenMs: {p95: 60}, requestMs: {p50: 1}"
    )
    (tmp_path / "platform.yaml").write_text(text, encoding="utf-8")

    def planned() -> list[dict[str, Any]]:
        result = blueprints("plan", "platform.yaml", "--output", "json", folder=tmp_path)
        found: list[dict[str, Any]] = json.loads(result.out)["objectives"]
        return found

    assert [each["replayedOn"] for each in planned()] == [None] * 3
    result = run("platform.yaml", "--as-written", "--output", "json")
    document = json.loads(result.out)
    assert (result.code, document["keepsObjectives"]) == (1, False)
    first, token, whole = planned()
    assert [first["isMet"], token["isMet"], whole["isMet"]] == [True, True, False]
    assert [each["replayedMs"] for each in (first, token, whole)] == [
        each["valueMs"] for each in document["judged"]
    ]
    assert (token["replayedOn"], token["replayedTrace"]) == (document["date"], "workload")
    (tmp_path / "platform.yaml").write_text(text.replace("p50: 1", "p50: 90000"), encoding="utf-8")
    assert [each["isMet"] for each in planned()] == [True] * 3, "another limit, the same replay"
    (tmp_path / "platform.yaml").write_text(text.replace("replicas: 3", "replicas: 2"), encoding="utf-8")
    assert [each["isMet"] for each in planned()] == [None] * 3
    full = blueprints("plan", "platform.yaml", "--full", folder=tmp_path, COLUMNS="200").out
    assert "the file has changed since" in full
    (tmp_path / "platform.replays.json").write_text("{}x", encoding="utf-8")
    for command in (("plan", "platform.yaml"), ("tune", "platform.yaml", "--as-written")):
        broken = blueprints(*command, folder=tmp_path)
        assert (broken.code, broken.out) == (1, "")
        assert (
            "platform.replays.json:1:3: is not JSON: Extra data; remove it, then write it with" in broken.err
        )


LATENCIES: dict[str, Any] = {str(kind): {"90": 1.0, "100": 2.5} for kind in LATENCY_NAMES}
RECORD = {"content": "0", "date": "2026-11-29", "trace": "workload", "latenciesMs": LATENCIES}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "1:1: is not JSON: Expecting value"),
        (json.dumps({"a/b": RECORD}).encode()[:-9], "is not JSON: Expecting"),
        (b"\x00\xff\xfe", "is not usable JSON: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 100_000, "is not usable JSON: "),
        (b" " * (8 * 1024**2 + 1), "is larger than 8 MiB"),
        (b"[]", "is no record of replays: Input should be a valid dictionary"),
        (b'{"a/b": 3}', "a/b: Input should be a valid dictionary"),
        ({**RECORD, "version": 2}, "a/b.version: Extra inputs are not permitted"),
        ({"content": "0", "date": "", "trace": ""}, "a/b.latenciesMs: Field required"),
        ({**RECORD, "date": 20261129}, "a/b.date: Input should be a valid string"),
        ({**RECORD, "latenciesMs": {**LATENCIES, "requestMs": {}}}, "has no 'requestMs' with the longest"),
        (
            {**RECORD, "latenciesMs": {**LATENCIES, "requestMs": {"100": "9"}}},
            "Input should be a valid number",
        ),
        (
            {**RECORD, "latenciesMs": {**LATENCIES, "requestMs": {"100": float("nan")}}},
            "Input should be a finite number",
        ),
        ({**RECORD, "latenciesMs": {**LATENCIES, "requestMs": {"nan": 1.0, "100": 1.0}}}, "is no percentile"),
    ],
)
def test_a_broken_record_of_replays_is_named_with_what_to_do(
    content: bytes | dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """Red if `plan` ends with a traceback, as it did for values of a wrong type."""
    file = tmp_path / "platform.replays.json"
    file.write_bytes(content if isinstance(content, bytes) else json.dumps({"a/b": content}).encode())
    with pytest.raises(UserError) as refused:
        read_replays(file)
    assert str(refused.value).startswith(f"{file}:")
    assert expected in str(refused.value)
    assert str(refused.value).endswith("; remove it, then write it with `blueprints tune FILE --as-written`")


def test_a_record_that_is_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: Is a directory; remove it"):
        read_replays(tmp_path)
    file = tmp_path / "platform.replays.json"
    file.write_text(json.dumps({"a/b": RECORD}), encoding="utf-8")
    assert read_replays(file)["a/b"].percentile_ms("requestMs", 95.0) == 2.5
    assert read_replays(tmp_path / "none.replays.json") == {}


def test_each_deployment_that_somebody_waits_for_is_replayed_with_its_own_requests(
    run: RunTune, tmp_path: Path
) -> None:
    """A model with several deployments could not be replayed; a queue's has no objective to judge."""
    document = yaml.safe_load(BLUEPRINT)
    spec = document["spec"]
    (model,) = spec["models"]
    (main,) = model["deployments"]
    model["deployments"] = [
        {"name": name, "aggregated": {**main["aggregated"], "replicas": replicas}}
        for name, replicas in (("main", 2), ("other", 1), ("night", 1))
    ]
    spec["observability"] = {}
    spec["teams"] = [
        {"name": "ads", "principals": ["arn:aws:iam::111122223333:role/ads"], "monthlyBudgetUsd": 9}
    ]
    rates = {"usdPerMillionInputTokens": 1, "usdPerMillionOutputTokens": 1}
    queue = {"name": "nightly", "model": "qwen3-8b", "rates": rates, "deployments": ["night"]}
    spec["batch"] = {"queues": [queue]}
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    judged = json.loads(run("platform.yaml", "--as-written", "--output", "json").out)["judged"]
    assert [each["deployment"] for each in judged] == ["main"] * 2 + ["other"] * 2
    planned = json.loads(blueprints("plan", "platform.yaml", "--output", "json", folder=tmp_path).out)
    shown = {(each["deployment"], each["replayedMs"]) for each in planned["objectives"]}
    assert shown == {(each["deployment"], each["valueMs"]) for each in judged}
    (tmp_path / "trace.jsonl").write_text("", encoding="utf-8")
    traced = run("platform.yaml", "--as-written", "--trace", "trace.jsonl")
    assert "got one trace for 2 deployments of qwen3-8b" in traced.err
    queue["deployments"] = ["main", "other", "night"]
    del model["workload"], model["objectives"]
    queue |= {"workload": {"inputTokens": 2000, "outputTokens": 100}, "load": {"requestsPerDay": 9}}
    (tmp_path / "platform.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    assert "nobody waits for these" in run("platform.yaml", "--as-written").err


def test_a_replay_as_written_chooses_nothing(run: RunTune) -> None:
    result = run("platform.yaml", "--as-written", "--write", "--gpus", "3")
    assert "--as-written: got --write, --gpus too" in " ".join(result.err.split())


def test_the_page_needs_nothing_else(run: RunTune, tmp_path: Path) -> None:
    assert run("platform.yaml", "--page", "tune.html").code == 0
    page = (tmp_path / "tune.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "<script" not in page
    assert "simulated" in page


def test_an_embedding_model_is_not_tuned_by_answers(run: RunTune, tmp_path: Path) -> None:
    """The replay simulates answers, and this model writes none."""
    text = BLUEPRINT.replace("outputTokens: 100, ", "").replace(
        "    objectives: {timeToFirstTokenP90Ms: 1000, timePerOutputTokenP90Ms: 60}\n",
        "    task: embed\n    routing: {roundRobin: {}}\n",
    )
    (tmp_path / "vectors.yaml").write_text(text, encoding="utf-8")
    result = run("vectors.yaml")
    assert result.code == 1
    assert "with 'task: embed'; this command measures answers" in result.err


def test_a_model_that_makes_images_is_not_tuned_by_answers(run: RunTune) -> None:
    result = run("image-generation")
    assert result.code == 1
    assert "with 'task: images'; this command measures answers of tokens" in result.err


def test_without_a_choice_the_exit_code_says_so(run: RunTune, tmp_path: Path) -> None:
    file = tmp_path / "platform.yaml"
    text = file.read_text(encoding="utf-8").replace(
        "timePerOutputTokenP90Ms: 60", "timePerOutputTokenP90Ms: 2"
    )
    file.write_text(text, encoding="utf-8")
    result = run("platform.yaml", "--write")
    assert result.code == 1
    assert "No configuration that fits the pools serves 6 requests/s" in result.out
    assert file.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["platform.yaml", "--model", "other"], "got --model other; allowed are qwen3-8b"),
        (["platform.yaml", "--engine", "triton"], "got --engine triton; allowed are vllm"),
        (["platform.yaml", "--trace", "none.csv"], "none.csv: cannot be read: No such file or directory"),
        (["quickstart-g6e", "--write"], "quickstart-g6e: is a shipped blueprint"),
        (["platform.yaml", "--page", "platform.yaml/page.html"], "cannot be written"),
    ],
    ids=["model", "engine", "trace", "shipped", "page"],
)
def test_what_is_wrong_is_said_in_a_line(run: RunTune, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.code == 1
    assert message in result.err


def test_a_range_of_a_capacity_shift_is_not_replaced_by_a_number(run: RunTune, tmp_path: Path) -> None:
    """The search took minutes, and then the file with its choice was refused."""
    file = tmp_path / "platform.yaml"
    elastic = BLUEPRINT.replace("replicas: 1", "replicas: {min: 1, max: 4}, scaledBy: {load: {}}")
    team = '{name: ads, principals: ["arn:aws:iam::111122223333:role/Ads"], monthlyBudgetUsd: 100}'
    rates = "{usdPerMillionInputTokens: 1, usdPerMillionOutputTokens: 1}"
    batch = f"teams: [{team}]\n  batch: {{queues: [{{name: nightly, model: qwen3-8b, rates: {rates}}}]}}"
    shift = f"  observability: {{}}\n  capacityShift: {{}}\n  {batch}\n  pools:"
    file.write_text(elastic.replace("  pools:", shift), encoding="utf-8")
    result = run("platform.yaml", "--write")
    assert result.code == 1
    assert "'capacityShift' needs a range with 'scaledBy'" in result.err


def test_without_dynamo_s_replay_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offline_replay, "find_spec", lambda name: None if name == "dynamo" else object())
    monkeypatch.setenv("XDG_CACHE_HOME", "/nowhere")
    with pytest.raises(UserError, match="install it with: blueprints local prepare"):
        added_commands.demand_replay()
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    with pytest.raises(UserError, match=r"Dynamo's replay comes with .*: pip install inference-local"):
        added_commands.demand_replay()


def test_a_trace_with_wrong_lines_names_them(run: RunTune, tmp_path: Path) -> None:
    lines = ["timestamp,input,output", "0,100,10", "1,many,10", "2,100"]
    Path(tmp_path / "trace.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    result = run("platform.yaml", "--trace", "trace.csv")
    assert result.code == 1
    assert "trace.csv:3:1: got input 'many'" in result.err
    assert "trace.csv:4:1: got 2 columns, the first line has 3" in result.err


def test_a_trace_is_replayed_in_place_of_the_workload(run: RunTune, tmp_path: Path) -> None:
    rows = [f"{second / 4},1500,80" for second in range(400)]
    Path(tmp_path / "trace.csv").write_text("\n".join(["timestamp,input,output", *rows]), encoding="utf-8")
    document = json.loads(run("platform.yaml", "--trace", "trace.csv", "--output", "json").out)
    assert document["trace"] == "trace.csv"
    assert document["demand"]["peakRequestsPerSecond"] == pytest.approx(4.0, rel=0.01)
    notes = " ".join(document["notes"])
    assert "does not record shared prefixes" in notes
    assert "peakRequestsPerSecond: 4" in notes
