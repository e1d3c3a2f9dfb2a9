"""A benchmark in words: measured, replayed and promised in the columns of `tune`."""

from dataclasses import replace

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.benchmarking import benchmark_text
from inference_blueprints.measure.benchmarking.benchmark import Benchmark, Bounds, generate_requests
from inference_blueprints.measure.benchmarking.benchmark_text import Tuned
from inference_blueprints.measure.completions.completion_client import RequestOutcome, TokenUsage
from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay
from inference_blueprints.measure.statistics import Basis, ServingCapacity, measure, percentile_of
from inference_blueprints.measure.tuning.tuning_text import rank_configurations
from inference_blueprints.report.tables import terminal_table
from inference_blueprints.serving.traffic import own_means
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, JudgedObjective, Objectives, judge

CAPACITY = ServingCapacity(accelerators=2, usd_per_hour=4.5, price_note="")
REPLAYED = SimulatedReplay(
    Latencies(300.0, 489.0, 495.0, 500.0, 501.0),
    Latencies(40.0, 47.05, 47.5, 48.0, 49.0),
    Latencies(1.0, 2.0, 2.5, 3.0, 4.0),
    2.0,
    0.0,
)


def outcome(number: int, first_ms: float, each_ms: float) -> RequestOutcome:
    """An answer of 200 tokens to a prompt of 3,000, of which 300 were cached."""
    sent = float(number)
    first = sent + first_ms / 1e3
    last = first + 199 * each_ms / 1e3
    return RequestOutcome(sent, sent, first, last, last, TokenUsage(3000, 200, 300))


def judged(outcomes: list[RequestOutcome], first_ms: float, each_ms: float) -> tuple[JudgedObjective, ...]:
    wanted = Objectives(time_to_first_token_p90_ms=first_ms, time_per_output_token_p90_ms=each_ms)
    return judge(wanted.stated, percentile_of(outcomes))


@pytest.fixture(scope="module")
def found() -> Benchmark:
    """Ten answers in ten seconds from the quickstart, all alike."""
    blueprint = load_blueprint("quickstart-g6e").blueprint
    outcomes = [outcome(number, 512.4, 45.0) for number in range(10)]
    return Benchmark(
        blueprint,
        0,
        "http://model.internal",
        simulated=False,
        questions=generate_requests(own_means(blueprint.spec.models[0]), Bounds(5.0, 10, 8192)),
        measurement=measure(outcomes, Basis(10.0, CAPACITY, simulated=False, profiled=True)),
        capacity=CAPACITY,
        judged=judged(outcomes, 1000.0, 50.0),
        replayed=REPLAYED,
        notes=("3 of them were left out: longer than 8,192 tokens.",),
    )


@pytest.fixture
def tuned(found: Benchmark) -> Tuned:
    deployments = tuple(found.blueprint.spec.models[0].deployments)
    latencies = {(FIRST_TOKEN, 90.0): 420.0, (EACH_TOKEN, 90.0): 55.5}
    return Tuned("sglang", deployments, 4, 8.97, 0.21, latencies, ("Tuned was for another demand: 4.",))


def test_what_was_asked_is_said_in_one_line(found: Benchmark) -> None:
    assert benchmark_text.title(found) == (
        "qwen3-8b at http://model.internal by its workload section: 10 requests, 2 requests/s, 3,000 prompt "
        "and 200 answer tokens each, 0% shared prefix"
    )
    of_trace = replace(found, questions=replace(found.questions, trace="mine.csv"))
    assert " by trace mine.csv: " in benchmark_text.title(of_trace)


def test_measured_and_replayed_stand_in_the_columns_of_tune(found: Benchmark) -> None:
    table = benchmark_text.comparison(found)
    assert table.rows == (
        # 4.5 USD an hour over 3,200 tokens a second.
        ("measured", "2x1 l40s", "vllm", "2", "4.50", "0.391", "512", "45.0"),
        ("replayed", "2x1 l40s", "vllm", "2", "4.50", "0.195", "489", "47.0"),
    )
    assert not any("simulated engines" in note for note in table.notes)
    assert table.notes[-1] == found.notes[0]


def test_the_columns_are_those_of_tune(found: Benchmark) -> None:
    """So that its rows can be put below one another."""

    class Nothing:
        evaluations = ()
        objectives = tuple(each.objective for each in found.judged)

    theirs, ours = rank_configurations(Nothing()), benchmark_text.comparison(found)  # type: ignore[arg-type]
    assert (ours.names, ours.figures) == (theirs.names, theirs.figures)


def test_what_tune_promised_is_a_row_with_its_own_configuration(found: Benchmark, tuned: Tuned) -> None:
    table = benchmark_text.comparison(found, tuned)
    assert table.rows[-1] == ("tuned", "2x1 l40s", "sglang", "4", "8.97", "0.210", "420", "55.5*")
    assert table.notes[-2:] == (
        "Tuned: the best configuration of `blueprints tune`, simulated with the workload of that search.",
        "Tuned was for another demand: 4.",
    )
    assert len(benchmark_text.comparison(found).rows) == 2
    assert terminal_table(table, 120).row_count == 3


def test_what_misses_an_objective_has_a_mark(found: Benchmark) -> None:
    outcomes = [outcome(0, 512.4, 45.0)]
    measured, _ = benchmark_text.comparison(replace(found, judged=judged(outcomes, 500.0, 45.5))).rows
    assert measured[-2:] == ("512*", "45.0")


def test_simulated_engines_are_called_so(found: Benchmark) -> None:
    simulated = replace(found, simulated=True)
    assert any(
        "not measurements of accelerators" in note for note in benchmark_text.comparison(simulated).notes
    )
    assert benchmark_text.latencies(simulated).names == ("milliseconds, simulated engines",)
    assert benchmark_text.latencies(found).names == ("milliseconds",)


def test_what_is_not_known_is_called_so(found: Benchmark) -> None:
    nothing = measure(
        [RequestOutcome(0.0, 0.0, None, None, 1.0, None, "HTTP 500", "gone")] * 2,
        Basis(1.0, replace(CAPACITY, usd_per_hour=None), simulated=False, profiled=True),
    )
    failed = replace(
        found,
        measurement=nothing,
        judged=judged([], 1000.0, 50.0),
        capacity=replace(CAPACITY, usd_per_hour=None),
        replayed=None,
    )
    assert benchmark_text.comparison(failed).rows == (
        ("measured", "2x1 l40s", "vllm", "2", "unknown", "unknown", "unknown", "unknown"),
    )
    assert benchmark_text.latencies(failed).notes == (
        "2 requests, 2 failures, 2 x HTTP 500; prefix cache hits: not reported by the endpoint.",
    )
    assert benchmark_text.as_dict(failed)["measured"]["keepsObjectives"] is None


def test_the_percentiles_and_cache_hits_are_told(found: Benchmark) -> None:
    table = benchmark_text.latencies(found)
    assert table.rows[0] == ("time to first token", "512", "512", "512", "512")
    assert table.notes == ("10 requests, 0 failures; prefix cache hits: 10.0% of the prompt tokens.",)


def test_both_roles_of_a_disaggregated_deployment_are_named(found: Benchmark) -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    table = benchmark_text.comparison(replace(found, blueprint=blueprint))
    assert table.rows[0][1] == "12x1 h200 + 1x4 h200"


def test_machines_get_the_same(found: Benchmark, tuned: Tuned) -> None:
    values = benchmark_text.as_dict(found, tuned)
    measured = values["measured"]
    assert measured.pop("judged")[1] == {
        "kind": "timePerOutputTokenMs",
        "percentile": 90.0,
        "limitMs": 50.0,
        "valueMs": pytest.approx(45.0),
        "met": True,
    }
    assert measured == {
        "timeToFirstTokenP90Ms": pytest.approx(512.4),
        "timePerOutputTokenP90Ms": pytest.approx(45.0),
        "usdPerMillionTokens": pytest.approx(0.390625),
        "keepsObjectives": True,
    }
    assert values["replayed"]["timeToFirstTokenP90Ms"] == 489.0
    assert values["tuned"]["keepsObjectives"] is False
    assert values["notes"] == [*found.notes, *tuned.notes]
    assert benchmark_text.as_dict(found)["tuned"] is None
