"""The configuration of a shipped blueprint's job, and its size."""

from __future__ import annotations

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.streaming import job_size
from inference_blueprints.serving.streaming_configuration import job_configuration
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.prompt_template import template_tree
from inference_contracts.streaming_job import JobSignalStore, StreamingJobConfiguration

STORE = JobSignalStore(
    host="localhost", port=6379, tls=False, user=None, authentication="none", cluster=False, cache_name=None
)


@pytest.fixture
def job() -> StreamingJob:
    [found] = load_blueprint("streaming-g6e").blueprint.spec.streaming
    return found


def configuration(job: StreamingJob) -> StreamingJobConfiguration:
    return job_configuration(
        job,
        platform="streaming",
        bootstrap_servers="localhost:9092",
        kafka_authentication="none",
        endpoint_url="http://localhost:8000",
        store=STORE,
        history_uri="file:///tmp/history",
    )


def test_it_says_what_the_blueprint_says(job: StreamingJob) -> None:
    made, size = configuration(job), job_size(job)
    assert (made.name, made.kafka.group, made.kafka.topic) == ("shopper", "shopper", "clicks")
    assert made.kafka.dead_letter_topic == "shopper-dead-letters"
    assert (made.session.gap_millis, made.session.debounce_millis) == (1_800_000, 500)
    assert made.prompt.template == template_tree(job.prompt.template)
    assert made.prompt.max_characters == 4 * job.prompt.max_input_tokens
    assert (made.endpoint.max_in_flight, made.endpoint.max_in_flight_per_subtask) == (
        size.max_in_flight,
        size.max_in_flight_per_subtask,
    )
    assert made.request.response_format == {
        "type": "json_schema",
        "json_schema": {"name": "answer", "strict": True, "schema": job.answer.json_schema},
    }
    assert StreamingJobConfiguration.from_json(made.to_json()) == made


def test_free_text_has_no_format(job: StreamingJob) -> None:
    free = job.model_copy(update={"answer": job.answer.model_copy(update={"json_schema": None})})
    assert configuration(free).request.response_format is None
