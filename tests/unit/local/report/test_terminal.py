"""The report in a terminal of 80 columns, and in a pipe."""

import dataclasses
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from inference_blueprints.measure.completions.completion_client import RequestOutcome
from inference_blueprints.spec.types import ImageRequests, Objectives, Workload
from inference_local.report import ModelRun, Report, print_report, render_html
from inference_local.report.terminal import Answering, print_answering, print_summary
from inference_local.scaling.scaling_outcome import WorkerSample
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.worker_kills import WorkerLoss
from tests.unit.local.report.conftest import ReportOf
from tests.unit.local.report.samples import BATCH_OUTCOME, PARTS, SCALING, answered, failed, result_of, run_of


@pytest.fixture
def printed(report_of: ReportOf) -> Callable[..., str]:
    def run(model_run: ModelRun, *, console: dict[str, Any] | None = None, **others: Any) -> str:
        output = io.StringIO()
        report = report_of(model_run, **others)
        print_report(report, Console(file=output, **({"width": 80} | (console or {}))))
        return output.getvalue()

    return run


@pytest.fixture
def usual_run() -> ModelRun:
    objectives = Objectives(time_to_first_token_p90_ms=50.0)
    return run_of(
        result_of(answered(0.0, 100.0), failed(1.0, "HTTP 500", "[red]gone")), objectives=objectives
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_the_curl_line_is_one_line(
    printed: Callable[..., str], report_of: ReportOf, usual_run: ModelRun, *, terminal: bool
) -> None:
    curl = report_of(usual_run).models[0].curl
    assert len(curl) > 80
    assert curl in printed(usual_run, console={"force_terminal": terminal, "color_system": None}).splitlines()


def test_a_pipe_gets_no_control_characters(printed: Callable[..., str], usual_run: ModelRun) -> None:
    assert "\x1b" not in printed(usual_run, console={"force_terminal": False})


def test_everything_asked_for_is_there(printed: Callable[..., str], usual_run: ModelRun) -> None:
    text = " ".join(printed(usual_run).split())
    for part in PARTS:
        assert part.name in text
        assert part.state in text
    for expected in (
        "http://127.0.0.1:4000/v1",
        "2 requests, 1 failure",
        "1 x HTTP 500, first: [red]gone",
        "latency, ms (simulated)",
        "objective timeToFirstTokenP90Ms 50 ms: missed (100 ms)",
        "prefix cache hits: 25.0% of the prompt tokens",
        "throughput per accelerator (simulated)",
        "at the replayed load",
        "Apache-2.0",
        "mean 3,000 tokens stated, 3,000 sent, 1,000 counted",
    ):
        assert expected in text


def test_engines_on_processors_have_exceptions_and_no_times(
    printed: Callable[..., str], usual_run: ModelRun
) -> None:
    rows = tuple(
        Replacement(workers, "--dtype", "not set", "float32", "no 16-bit types")
        for workers in ("prefill", "decode")
    )
    text = " ".join(printed(usual_run, timed=False, replacements=rows).split())
    assert "prefill, decode: setting" in text
    assert "--dtype not set → float32 no 16-bit types" in text
    assert "times mean nothing" in text
    for figure in ("latency, ms", "throughput", "objective", "price per million"):
        assert figure not in text
    assert "2 requests, 1 failure" in text


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_long_value_leaves_room_for_its_setting(
    printed: Callable[..., str], usual_run: ModelRun, width: int
) -> None:
    """Bug: the address of a model pushed the names and reasons of all settings out of the terminal."""
    address = (
        "https://huggingface.co/Qwen/Qwen3-4B-GGUF/resolve/bc640142c66e1fdd12af0bd68f40445458f3869b/Q.gguf"
    )
    rows = (
        Replacement("server", "--model-url", address, "none", "nothing is downloaded"),
        Replacement("server", "--threads", "32", "1", "two processors"),
    )
    lines = printed(usual_run, replacements=rows, console={"width": width}).splitlines()
    text = " ".join(" ".join(lines).split())
    for shown in ("--model-url", "nothing is downloaded", "--threads", "32 → 1", "two processors"):
        assert shown in text
    assert address in text.replace(" ", "")


def test_lost_workers_say_what_became_of_their_streams(
    printed: Callable[..., str], usual_run: ModelRun
) -> None:
    losses = (
        WorkerLoss("a-main", "prefill", workers=12, killed=2, streams=40, moved=5, lost=1),
        WorkerLoss("a-main", "decode", workers=1),
    )
    text = " ".join(printed(usual_run, worker_losses=losses).split())
    assert (
        "2 of 12 prefill workers of a-main killed during 40 answers: 5 moved to another worker, "
        "39 complete, 1 lost."
    ) in text
    assert "The only decode worker of a-main was not killed" in text


def test_batch_jobs_say_what_became_of_every_request(
    printed: Callable[..., str], usual_run: ModelRun
) -> None:
    lossy = dataclasses.replace(BATCH_OUTCOME, completed=196, failed=1, lost=3, duplicated=2)
    text = " ".join(printed(usual_run, batch=(BATCH_OUTCOME, lossy)).split())
    assert (
        "Batch job of team ads in queue nightly, completed after 31 s (simulated): 200 requests of qwen3-8b, "
        "200 answered, 0 failed, 0 lost, 0 duplicated; 2 workers killed and replaced; 0.0800 USD"
    ) in text
    assert "196 answered, 1 failed, 3 lost, 2 duplicated" in text
    assert text.count("Signal captions, read back: 200 written, 0 missing, 0 wrong.") == 2
    plain = dataclasses.replace(BATCH_OUTCOME, signals=None)
    assert "Signal" not in printed(usual_run, batch=(plain,))


def test_what_is_left_out_says_why(printed: Callable[..., str]) -> None:
    text = " ".join(printed(run_of(result_of(answered(0.0, 100.0)), profiled=False)).split())
    assert "price per million tokens (simulated): not available" in text
    assert "no latency profile" in text


def test_workers_that_followed_the_load_have_their_lines(
    printed: Callable[..., str], usual_run: ModelRun
) -> None:
    text = " ".join(printed(usual_run, scaling=SCALING).split())
    assert "Workers followed the load: 1 to 3 were ready. 2 decisions, 1 of them changed the number." in text
    assert "1 lacked an answer of Prometheus." in text
    assert "0 streams cut, 0 requests lost" in text
    assert "0.20 GPU-hours (simulated), 0.30 with the largest number of workers all the time." in text
    assert "held 1.5 of 2 accelerators on average" in text
    assert "reached" not in text, "steps of a trace are in the plot"
    assert "Workers followed the load" not in printed(usual_run)


def test_workers_that_followed_clients_say_how_many_came_and_when(
    printed: Callable[..., str], usual_run: ModelRun
) -> None:
    """It turns red if a change that was not reached looks like one that was."""
    wanted = [(0.0, 2, 2, 2), (6.0, 3, 2, 3), (16.0, 3, 3, 3), (42.0, 2, 2, 3)]
    samples = tuple(WorkerSample(*each) for each in wanted)
    scaling = dataclasses.replace(SCALING, samples=samples, clients=12, requests=144)
    text = " ".join(printed(usual_run, scaling=scaling).split())
    assert "Up to 12 clients at once sent 144 requests, apart from the replay." in text
    assert "At 6 s: from 2 to 3 workers, reached after 10 s." in text
    assert "At 42 s: from 3 to 2 workers, never reached." in text
    assert "GPU-hours" not in text
    assert "accelerators on average" not in text, "they held those after the replay"


@pytest.mark.parametrize("width", [60, 72, 79, 80, 120])
def test_no_width_splits_a_word_of_the_parts(
    printed: Callable[..., str], usual_run: ModelRun, width: int
) -> None:
    parts = [
        PlatformPart("AWS::EC2::SecurityGroupEgress", "stubbed", "1: a rule is recorded"),
        PlatformPart("KEDA and HorizontalPodAutoscaler", "stand-in", "aws-load-balancer-controller 3.5.0"),
    ]
    text = printed(usual_run, parts=parts, console={"width": width})
    lines = text.split("qwen3-8b\n")[0].splitlines()
    assert max(map(len, lines)) <= width
    for word in " ".join(f"{each.name} {each.state} {each.detail}" for each in parts).split():
        assert word in text
    assert ("part " in lines[1]) == (width >= 80)


def test_a_lost_stream_is_one_stream(printed: Callable[..., str], usual_run: ModelRun) -> None:
    scaling = dataclasses.replace(SCALING, lost=1, cut_streams=1)
    text = " ".join(printed(usual_run, scaling=scaling).split())
    assert "1 stream cut, 1 request lost; every token was counted." in text


@pytest.mark.parametrize(("lost", "is_red"), [(0, False), (2, True)])
def test_lost_requests_of_an_elastic_run_are_red(
    printed: Callable[..., str], usual_run: ModelRun, lost: int, *, is_red: bool
) -> None:
    scaling = dataclasses.replace(SCALING, lost=lost)
    console = {"force_terminal": True, "color_system": "standard"}
    text = printed(usual_run, scaling=scaling, console=console)
    assert (f"\x1b[31m0 streams cut, {lost} requests lost" in text) == is_red


def test_images_are_counted_and_not_described_by_tokens(
    printed: Callable[..., str], report_of: ReportOf
) -> None:
    images = ImageRequests(per_request=2, size="512x512", steps=9)
    outcome = RequestOutcome(0.0, 0.0, None, 0.5, 0.5, None, images=2)
    workload = Workload(images=images, peak_requests_per_second=1.0)
    result = dataclasses.replace(
        result_of(outcome, outcome, failed(1.0, "HTTP 503"), model="qwen3-8b"), workload=workload
    )
    job = dataclasses.replace(BATCH_OUTCOME, signals=None, images=200)
    text = " ".join(printed(run_of(result), batch=(job,)).split())
    assert "3 requests, 1 failure, 4 images" in text
    assert "Every request asked for 2 images of 512x512 in 9 steps" in text
    assert "images/generations" in report_of(run_of(result)).models[0].curl
    assert "not priced by tokens" in text
    assert "200 images, one per file." in text
    page = render_html(report_of(run_of(result)), [run_of(result)])
    for of_text in ("time to first token", "prefix cache", "Prompts", "throughput per accelerator"):
        assert of_text not in text
        assert of_text not in page
    assert "end to end" in page


def summed_up(report: Report, width: int = 80) -> list[str]:
    output = io.StringIO()
    console = Console(file=output, width=width)
    print_summary(report, Path("build/run/report.html"), console, [("still up", "http://127.0.0.1:4000/v1")])
    return output.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_short_report_fits_and_says_what_is_not_real(
    report_of: ReportOf, usual_run: ModelRun, width: int
) -> None:
    """Forty lines of tables hid the figures; a summary that names only what is real would hide the rest."""
    parts = [*PARTS, *(PlatformPart(f"AWS::EC2::Kind{number}", "stubbed", "recorded") for number in range(9))]
    losses = (WorkerLoss("a-main", "worker", workers=2, killed=1, streams=4, moved=2, lost=0),)
    lines = summed_up(report_of(usual_run, parts=parts, worker_losses=losses), width)
    assert max(map(len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    for expected in (
        "requests 2, 1 failure (1 x HTTP 500); 1 of 2 workers killed: 2 answers moved, 0 lost",
        "first token p50 100 ms, p99 100 ms (simulated)",
        "objectives 0 of 1 met (simulated)",
        "real router",
        "not real engine (simulated); CloudFormation (emulated); controllers, 9 resource types (stubbed)",
        "report build/run/report.html",
        "still up http://127.0.0.1:4000/v1",
    ):
        assert expected in text
    assert width < 80 or len(lines) <= 11


def test_a_short_report_has_a_line_for_each_further_outcome(report_of: ReportOf, usual_run: ModelRun) -> None:
    lossy = dataclasses.replace(BATCH_OUTCOME, completed=199, lost=1)
    text = "\n".join(summed_up(report_of(usual_run, scaling=SCALING, batch=(lossy,))))
    assert "scaling     1 to 3 workers followed the load; 0 streams cut, 0 requests lost" in text
    assert "batch       nightly: 200 requests, 199 answered, 1 lost; 2 workers killed" in text
    timeless = "\n".join(summed_up(report_of(usual_run, timed=False)))
    for figure in ("first token", "price", "objectives"):
        assert figure not in timeless


@pytest.mark.parametrize(("width", "beside"), [(60, False), (80, True), (120, True)])
def test_an_endpoint_has_its_time_and_a_whole_command(width: int, *, beside: bool) -> None:
    curl = 'curl -s http://127.0.0.1:4000/v1/chat/completions -d \'{"model": "a"}\' ' + "x" * 60
    models = [
        Answering("a", "http://127.0.0.1:4000/v1", curl),
        Answering("b", "http://127.0.0.1:4001/v1", ""),
    ]
    output = io.StringIO()
    console = Console(file=output, width=width)
    print_answering(models, "engines simulated, frontends and router real", 12.24, "build/run/logs", console)
    lines = output.getvalue().splitlines()
    assert curl in lines
    assert "http://127.0.0.1:4001/v1  b" in lines
    if beside:
        assert lines[1].startswith("a, b answer (engines simulated, frontends and router real)")
    else:
        assert lines[1].startswith("a, b answer after 12.2 s (engines simulated,"), "it had a line of its own"
    assert any(line.endswith("12.2 s") and len(line) > 20 for line in lines) == beside
