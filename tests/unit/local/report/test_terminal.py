"""The report in a terminal of 80 columns, and in a pipe."""

import dataclasses
import io

import pytest
from rich.console import Console

from inference_blueprints.local.report import print_report
from inference_blueprints.local.worker_losses import WorkerLoss
from inference_blueprints.spec.types import Objectives
from inference_blueprints.targets.local.platform_parts import Replacement
from tests.unit.local.report.samples import BATCH_OUTCOME, PARTS, answered, failed, result_of, run_of


@pytest.fixture
def printed(report_of):
    def run(model_run, *, console=None, **others) -> str:
        output = io.StringIO()
        report = report_of(model_run, **others)
        print_report(report, Console(file=output, width=80, **(console or {})))
        return output.getvalue()

    return run


@pytest.fixture
def usual_run():
    objectives = Objectives(time_to_first_token_p90_ms=50.0)
    return run_of(
        result_of(answered(0.0, 100.0), failed(1.0, "HTTP 500", "[red]gone")), objectives=objectives
    )


@pytest.mark.parametrize("terminal", [True, False])
def test_the_curl_line_is_one_line(printed, report_of, usual_run, terminal) -> None:
    curl = report_of(usual_run).models[0].curl
    assert len(curl) > 80
    assert curl in printed(usual_run, console={"force_terminal": terminal, "color_system": None}).splitlines()


def test_a_pipe_gets_no_control_characters(printed, usual_run) -> None:
    assert "\x1b" not in printed(usual_run, console={"force_terminal": False})


def test_everything_asked_for_is_there(printed, usual_run) -> None:
    text = " ".join(printed(usual_run).split())
    for part in PARTS:
        assert part.name in text
        assert part.state in text
    for expected in (
        "http://127.0.0.1:4000/v1",
        "2 requests, 1 failures",
        "1 x HTTP 500, first: [red]gone",
        "latency, ms (simulated)",
        "objective timeToFirstTokenP90Ms 50 ms: missed (100 ms)",
        "prefix cache hits: 25.0% of the prompt tokens",
        "throughput per GPU (simulated)",
        "at the replayed load",
        "Apache-2.0",
        "mean 3,000 tokens stated, 3,000 sent, 1,000 counted",
    ):
        assert expected in text


def test_engines_on_processors_have_exceptions_and_no_times(printed, usual_run) -> None:
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
    assert "2 requests, 1 failures" in text


def test_lost_workers_say_what_became_of_their_streams(printed, usual_run) -> None:
    losses = (
        WorkerLoss("a-main", "prefill", workers=12, killed=2, streams=40, moved=5, lost=1),
        WorkerLoss("a-main", "decode", workers=1),
    )
    text = " ".join(printed(usual_run, worker_losses=losses).split())
    assert (
        "2 of 12 prefill workers of a-main killed during 40 streams: 5 moved to another worker, "
        "39 complete, 1 lost."
    ) in text
    assert "The only decode worker of a-main was not killed" in text


def test_batch_jobs_say_what_became_of_every_request(printed, usual_run) -> None:
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


def test_what_is_left_out_says_why(printed) -> None:
    text = " ".join(printed(run_of(result_of(answered(0.0, 100.0)), profiled=False)).split())
    assert "price per million tokens (simulated): not available" in text
    assert "no latency profile" in text
