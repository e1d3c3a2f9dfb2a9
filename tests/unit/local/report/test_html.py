"""The page asks nobody for anything, escapes what it did not write, and says what is simulated."""

import dataclasses
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from inference_blueprints.measure.charts import Curve
from inference_blueprints.spec.types import Objectives
from inference_local.report import ModelRun, render_html
from inference_local.report.plots import scaling_plots
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.worker_kills import WorkerLoss
from tests.unit.local.report.conftest import ReportOf
from tests.unit.local.report.samples import BATCH_OUTCOME, PARTS, SCALING, answered, failed, result_of, run_of

HOSTILE = "<script>alert('x')</script>\"&"
#: Attributes that make a browser fetch something.
FETCHING = {"src", "srcset", "href", "xlink:href", "data", "action", "poster", "background"}
VOID = {"meta", "link", "br", "img", "input", "hr"}


class Page(HTMLParser):
    """Collects elements and checks that they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


#: Renders the page of runs.
PageOf = Callable[..., tuple[str, Page]]


@pytest.fixture
def page_of(report_of: ReportOf) -> PageOf:
    def render(*runs: ModelRun, **others: Any) -> tuple[str, Page]:
        report = report_of(*runs, **others)
        text = render_html(report, list(runs))
        return text, Page(text)

    return render


@pytest.fixture
def usual_run() -> ModelRun:
    outcomes = [answered(float(number), 100.0 + number) for number in range(20)]
    objectives = Objectives(time_to_first_token_p90_ms=110.0)
    return run_of(result_of(*outcomes, failed(30.0, "HTTP 500", "gone")), objectives=objectives)


def test_nothing_on_the_page_is_fetched(page_of: PageOf, usual_run: ModelRun) -> None:
    text, page = page_of(usual_run)
    assert [name for name, _ in page.elements if name in {"script", "link", "iframe", "img", "object"}] == []
    assert [attributes for _, attributes in page.elements if FETCHING & attributes.keys()] == []
    assert not re.search(r"url\(|@import", text)
    assert any("default-src 'none'" in (meta.get("content") or "") for meta in page.of("meta"))


def test_every_element_is_closed(page_of: PageOf, usual_run: ModelRun) -> None:
    _, page = page_of(usual_run)
    assert page.open == []


def test_names_from_outside_are_text(page_of: PageOf) -> None:
    result = result_of(answered(0.0, 100.0), failed(1.0, "HTTP 500", HOSTILE), model=HOSTILE)
    text, page = page_of(run_of(result), parts=(*PARTS, PlatformPart(HOSTILE, "real", HOSTILE)))
    assert "<script" not in text
    assert page.text.count(HOSTILE) >= 4


def test_each_plot_has_its_words_and_no_id_twice(page_of: PageOf, usual_run: ModelRun) -> None:
    _, page = page_of(usual_run, usual_run)
    plots = page.of("svg")
    assert len(plots) == 12
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))
    for plot in plots:
        assert plot["role"] == "img"
        assert set((plot["aria-labelledby"] or "").split()) <= set(identities)


def test_figures_of_simulated_engines_say_so_and_others_do_not(page_of: PageOf, usual_run: ModelRun) -> None:
    _, page = page_of(usual_run)
    for title in (
        "Latency, ms",
        "Throughput and price",
        "Time to first token, cumulative",
        "End to end, cumulative",
    ):
        assert f"{title} (simulated)" in page.text
    _, real = page_of(usual_run, parts=(PlatformPart("engine", "real", "a GPU"),))
    assert "simulated" not in real.text


def test_a_page_of_engines_on_processors_has_exceptions_and_no_times(
    page_of: PageOf, usual_run: ModelRun
) -> None:
    rows = tuple(
        Replacement(workers, "--dtype", "not set", "float32", "no 16-bit types")
        for workers in ("prefill", "decode")
    )
    _, page = page_of(usual_run, timed=False, replacements=rows)
    assert page.text.count("no 16-bit types") == 1
    assert "prefill, decode" in page.text
    assert "times mean nothing" in page.text
    for figure in ("Latency, ms", "Throughput and price", "Time to first token", "Objective"):
        assert figure not in page.text
    assert not page.of("svg")


def test_streams_lost_with_a_worker_stand_out(page_of: PageOf, usual_run: ModelRun) -> None:
    loss = WorkerLoss("a-main", "worker", workers=2, killed=1, streams=8, moved=4)
    lines = [page.of("li") for page in (page_of(usual_run, worker_losses=(loss,))[1], page_of(usual_run)[1])]
    assert len(lines[0]) == len(lines[1]) + 1
    _, bad = page_of(usual_run, worker_losses=(dataclasses.replace(loss, lost=1),))
    assert "7 complete, 1 lost" in bad.text
    assert bad.of("li").count({"class": "bad"}) == lines[0].count({"class": "bad"}) + 1


def test_batch_jobs_that_lost_something_stand_out(page_of: PageOf, usual_run: ModelRun) -> None:
    _, page = page_of(usual_run, batch=(BATCH_OUTCOME,))
    assert "200 answered, 0 failed, 0 lost, 0 duplicated" in page.text
    _, bad = page_of(usual_run, batch=(dataclasses.replace(BATCH_OUTCOME, completed=199, lost=1),))
    assert bad.of("li").count({"class": "bad"}) == page.of("li").count({"class": "bad"}) + 1


def test_a_page_without_any_answer_still_shows_the_failures(page_of: PageOf) -> None:
    _, page = page_of(run_of(result_of(failed(0.0, "HTTP 500", "gone"))))
    assert len(page.of("svg")) == 1
    assert "HTTP 500" in page.text


def number(written: str | None) -> float:
    assert written is not None
    return float(written)


def test_every_mark_lies_inside_its_plot(page_of: PageOf, usual_run: ModelRun) -> None:
    _, page = page_of(usual_run)
    for circle in page.of("circle"):
        assert 0 <= number(circle["cx"]) <= 440
        assert 0 <= number(circle["cy"]) <= 250
    for bar in page.of("rect"):
        assert number(bar["x"]) + number(bar["width"]) <= 440


def test_the_section_of_scaling_has_its_figures_plots_and_decisions(
    page_of: PageOf, usual_run: ModelRun
) -> None:
    text, page = page_of(usual_run, scaling=SCALING)
    assert "Workers that followed the load (simulated)" in page.text
    assert "1 to 3 were ready" in page.text
    assert "queue-length no answer" in page.text
    assert "too few answers" in page.text
    assert "as before" not in page.text  # it changed nothing
    plain, _ = page_of(usual_run)
    # The workers, and what the decisions saw of the one trigger.
    assert text.count("<svg") == plain.count("<svg") + 2
    assert "followed the load" not in plain


def test_a_plot_of_readings_has_a_gap_without_answers() -> None:
    answers = [1.0, 2.0, None, None, 4.0, 5.0]
    decisions = tuple(
        dataclasses.replace(SCALING.decisions[0], seconds=float(second), readings={"queue-length": answer})
        for second, answer in enumerate(answers)
    )
    _, plot = scaling_plots(dataclasses.replace(SCALING, decisions=decisions), simulated=True)
    curves = [layer for layer in plot.layers if isinstance(layer, Curve)]
    assert [list(curve.points) for curve in curves] == [[(0.0, 1.0), (1.0, 2.0)], [(4.0, 4.0), (5.0, 5.0)]]
