"""The configuration that a streaming job reads, from the blueprint and where the job runs."""

from __future__ import annotations

from inference_blueprints.serving.streaming import job_size, stream_load
from inference_blueprints.spec.types import StreamingJob
from inference_contracts.prompt_template import template_tree
from inference_contracts.streaming_job import (
    IamAuthentication,
    JobDoor,
    JobEndpoint,
    JobHistory,
    JobKafka,
    JobPrompt,
    JobSession,
    JobShard,
    JobSignal,
    JobSignalStore,
    StreamedRequest,
    StreamingJobConfiguration,
)
from inference_contracts.units import MILLISECONDS_PER_SECOND

#: One more attempt than the first: the deadline holds for both.
_ATTEMPTS = 2


def job_configuration(
    job: StreamingJob,
    *,
    platform: str,
    bootstrap_servers: str,
    kafka_authentication: IamAuthentication,
    endpoint_url: str,
    store: JobSignalStore,
    history_uri: str,
    shard: JobShard | None = None,
    door: JobDoor | None = None,
) -> StreamingJobConfiguration:
    """Return the configuration of a job.

    job: The job in the blueprint.
    platform: Name of the blueprint.
    bootstrap_servers, kafka_authentication: Brokers, and how they know the job.
    endpoint_url: Address of the model's OpenAI API, without ``/v1``.
    door: The front door, if the address is one.
    history_uri: Folder of the history, ``s3a://`` or ``file:///``.
    shard: Which of the job's applications it is; None for a job that reads all partitions.
    """
    size = job_size(job)
    schema = job.answer.json_schema
    return StreamingJobConfiguration(
        name=job.name,
        platform=platform,
        kafka=JobKafka.of_job(
            job.name,
            job.topic_names,
            bootstrap_servers=bootstrap_servers,
            authentication=kafka_authentication,
            shard=shard,
        ),
        session=JobSession(
            key=job.session.key,
            time=job.session.time,
            id=job.session.id,
            gap_millis=job.session.gap_seconds * MILLISECONDS_PER_SECOND,
            debounce_millis=job.session.debounce_millis,
            max_events=job.session.max_events,
        ),
        prompt=JobPrompt(
            system=job.prompt.system,
            template=template_tree(job.prompt.template),
            max_characters=stream_load(job).prompt_characters,
        ),
        request=StreamedRequest(
            model=job.model,
            max_tokens=job.answer.max_tokens,
            response_format=None
            if schema is None
            else {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            },
            priority=None,
        ),
        endpoint=JobEndpoint(
            url=endpoint_url,
            authentication="bearer" if door else "none",
            deadline_millis=job.deadline_millis,
            attempts=_ATTEMPTS,
            max_in_flight=size.max_in_flight,
            max_in_flight_per_subtask=size.max_in_flight_per_subtask,
            max_age_millis=job.max_age_seconds * MILLISECONDS_PER_SECOND or None,
            door=door,
        ),
        signal=JobSignal(name=job.signal.name, ttl_seconds=job.signal.ttl_seconds, store=store),
        history=JobHistory(uri=history_uri),
    )
