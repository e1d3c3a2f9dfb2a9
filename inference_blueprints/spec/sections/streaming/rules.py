"""Rules on streaming jobs: what they read, what they call, and what they write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

import inference_catalog as catalog
from inference_blueprints.spec.derived import platform_zones
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.sections.models.keys import STACK_OF_ENGINE
from inference_blueprints.spec.types import Model, Signal, Spec, StreamingJob, stated_maximum
from inference_blueprints.spec.wording import Path, allowed, listing, quote, suggestion
from inference_catalog.figures import regions_without_flink_logs
from inference_contracts.batch_limits import BYTES_PER_TOKEN
from inference_contracts.errors import Finding
from inference_contracts.units import MILLISECONDS_PER_SECOND, SECONDS_PER_HOUR

# Rules on the events and templates of streaming jobs: the examples pass through both.

_TEMPLATES = "inference_contracts.prompt_template"


@rule
def examples_are_events(spec: Spec) -> Iterator[Finding]:
    """Check that the example events of a streaming job have a key, a time and, if it is named, an id."""
    for index, job in usable(spec.streaming):
        for place, example in usable(job.events.examples):
            path: Path = ("spec", "streaming", index, "events", "examples", place)
            yield from (Finding((*path, *below), message) for below, message in _faults(job, example))


@rule
def template_renders_the_examples(spec: Spec) -> Iterator[Finding]:
    """Check that the template of a streaming job is valid, and that it renders the example events."""
    for index, job in usable(spec.streaming):
        path: Path = ("spec", "streaming", index, "prompt", "template")
        # Jinja2 takes a tenth of a second to import, and few blueprints have a template.
        templates = import_module(_TEMPLATES)
        fault = templates.template_fault(job.prompt.template)
        if fault:
            yield Finding(path, f"is not a template that streaming can use: {fault}; correct it")
            continue
        maximum = job.prompt.max_input_tokens * BYTES_PER_TOKEN - len(job.prompt.system or "")
        values = {"events": job.events.examples, "session": _session(job)}
        try:
            text = templates.Prompts(job.prompt.template, max_characters=max(1, maximum)).render(values)
        except templates.RenderingError as error:
            message = f"does not render the events of 'events.examples': {error}; correct one of them"
            yield Finding(path, message)
            continue
        if not text.strip():
            yield Finding(path, "renders the events of 'events.examples' to nothing; use 'events'")


def _faults(job: StreamingJob, example: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """Yield what is wrong with an event, with the path below it."""
    names, session = list(example), job.session
    for label, field in (("key", session.key), ("time", session.time), ("id", session.id)):
        if field is not None and field not in example:
            message = (
                f"has no field {quote(field)}, which is session.{label}{suggestion(field, names)}; add it, "
                "or name another field"
            )
            yield (), message
    key = example.get(session.key, "-")
    if not isinstance(key, str) or not key:
        yield (session.key,), f"got {quote(key)}, the key of a session is a text that is not empty"
    if session.time in example and not _is_time(example[session.time]):
        message = (
            f"got {quote(example[session.time])}, expected milliseconds since 1970 or ISO 8601 such as "
            "'2026-11-23T08:00:00Z'"
        )
        yield (session.time,), message


def _is_time(value: object) -> bool:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value).tzinfo is not None
        except ValueError:
            return False
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _session(job: StreamingJob) -> str:
    return str(job.events.examples[0].get(job.session.key, ""))


JOBS: Path = ("spec", "streaming")


@rule
def streaming_has_kafka(spec: Spec) -> Iterator[Finding]:
    """Check that streaming jobs have a Kafka cluster, and that a Kafka cluster has streaming jobs."""
    if spec.streaming and spec.kafka is None:
        message = (
            "there is no Kafka cluster to read from; add 'kafka: {express: {}}' to spec, or name yours "
            "under 'kafka.existing'"
        )
        yield Finding(JOBS, message)
    if spec.kafka and not spec.streaming:
        message = "no job reads from the cluster; add a job to spec.streaming, or remove this section"
        yield Finding(("spec", "kafka"), message)


@rule
def jobs_are_logged(spec: Spec) -> Iterator[Finding]:
    """Check that CloudFormation can create the jobs with their logs in the region."""
    without, region = regions_without_flink_logs(), spec.environment.region
    if spec.streaming and region in without:
        known = sorted(catalog.regions().keys() - without)
        message = (
            f"CloudFormation cannot create Flink applications with logs in {quote(region)}; choose one of "
            f"{listing(known)} as the region, or remove this section"
        )
        yield Finding(JOBS, message)


@rule
def jobs_differ(spec: Spec) -> Iterator[Finding]:
    """Check that streaming jobs have different names."""
    names: dict[Path, str] = {(*JOBS, index, "name"): job.name for index, job in usable(spec.streaming)}
    yield from duplicate_names("streaming job", names)


@rule
def job_has_a_model(spec: Spec) -> Iterator[Finding]:
    """Check that the model of a streaming job is one of the blueprint's, and that it writes text."""
    names = [model.name for model in spec.models]
    for index, job in usable(spec.streaming):
        path = (*JOBS, index, "model")
        if job.model not in names:
            message = f"got {quote(job.model)}, {allowed('model', names)}{suggestion(job.model, names)}"
            yield Finding(path, message)
        elif task := next(
            (m.task for m in spec.models if m.name == job.model and m.task != "generate"), None
        ):
            message = f"got {quote(job.model)}, a model with 'task: {task}' writes no text; choose another"
            yield Finding(path, message)


@rule
def job_has_a_team(spec: Spec) -> Iterator[Finding]:
    """Check that the team of a streaming job is in the blueprint."""
    names = [team.name for team in spec.teams]
    for index, job in usable(spec.streaming):
        if job.team in names:
            continue
        known = allowed("team", names) if names else "there are no teams; add it to spec.teams"
        yield Finding((*JOBS, index, "team"), f"got {quote(job.team)}, {known}{suggestion(job.team, names)}")


@rule
def job_writes_a_signal_of_its_team(spec: Spec) -> Iterator[Finding]:
    """Check that a streaming job writes a signal of its team, and that no other job writes it."""
    signals: Sequence[Signal] = spec.signal_store.signals if spec.signal_store else ()
    owned = {signal.name: signal.team for signal in signals}
    first: dict[str, int] = {}
    for index, job in usable(spec.streaming):
        path, name = (*JOBS, index, "signal", "name"), job.signal.name
        if owned.get(name) != job.team:
            own = [each for each, team in owned.items() if team == job.team]
            known = allowed("signal", own) if own else f"team {quote(job.team)} has none"
            message = (
                f"got {quote(name)}, {known}{suggestion(name, own)}; declare it under "
                f"spec.signalStore.signals with team {quote(job.team)}"
            )
            yield Finding(path, message)
        elif first.setdefault(name, index) != index:
            message = (
                f"got {quote(name)}, which the job at spec.streaming[{first[name]}] writes too, so each "
                "would replace the other's values; declare another signal"
            )
            yield Finding(path, message)


@rule
def prompt_and_answer_fit_the_context(spec: Spec) -> Iterator[Finding]:
    """Check that the longest prompt and answer of a streaming job fit the context of its model."""
    for index, job in usable(spec.streaming):
        model = _model(spec, job)
        entry = model.weights.entry if model else None
        tokens = job.prompt.max_input_tokens + job.answer.max_tokens
        if entry and tokens > entry.context_length:
            message = (
                f"maxInputTokens {job.prompt.max_input_tokens} + answer.maxTokens {job.answer.max_tokens} = "
                f"{tokens} tokens, the context of {entry.name} is {entry.context_length}; lower one of them"
            )
            yield Finding((*JOBS, index, "prompt", "maxInputTokens"), message)


@rule
def stated_lengths_cover_prompt_and_answer(spec: Spec) -> Iterator[Finding]:
    """Check that the longest lengths that a streaming job states are not below those that it may send."""
    for index, job in usable(spec.streaming):
        if job.workload is None:
            continue
        sent = (
            ("inputTokens", job.workload.input_tokens, "prompt.maxInputTokens", job.prompt.max_input_tokens),
            ("outputTokens", job.workload.output_tokens, "answer.maxTokens", job.answer.max_tokens),
        )
        for key, lengths, limit, tokens in sent:
            stated = stated_maximum(lengths)
            if stated is not None and stated < tokens:
                message = (
                    f"got {stated}, but {limit} is {tokens}, and the workers are sized for no more than is "
                    f"stated; raise it to {tokens}, or lower {limit}"
                )
                yield Finding((*JOBS, index, "workload", key, "max"), message)


def advised_deadline_millis(job: StreamingJob) -> int | None:
    """Return a deadline to raise that of a job to; None if it is above the expected time of a call."""
    latency = job.load.latency_millis
    return None if job.deadline_millis > latency else 3 * latency


@rule
def deadline_is_above_the_latency(spec: Spec) -> Iterator[Finding]:
    """Check that the deadline of a streaming job is longer than the expected time of a call."""
    for index, job in usable(spec.streaming):
        advised = advised_deadline_millis(job)
        if advised is not None:
            message = (
                f"got {job.deadline_millis:,}, but a call is expected to take {job.load.latency_millis:,} ms "
                "(load.latencyMillis), so about half of the prompts would become dead letters; raise it well "
                f"above that, such as to {advised:,}, or choose a faster model"
            )
            yield Finding((*JOBS, index, "deadlineMillis"), message)


@rule
def sessions_hold_together(spec: Spec) -> Iterator[Finding]:
    """Check that the gap of a session is longer than the debounce and than the time between its events."""
    for index, job in usable(spec.streaming):
        path, session, load = (*JOBS, index, "session", "gapSeconds"), job.session, job.load
        between = load.session_seconds / load.events_per_session
        if session.gap_seconds * MILLISECONDS_PER_SECOND <= session.debounce_millis:
            message = (
                f"got {session.gap_seconds} s, the session would end before its debounce of "
                f"{session.debounce_millis} ms; raise it"
            )
            yield Finding(path, message)
        elif session.gap_seconds <= between:
            message = (
                f"got {session.gap_seconds} s, but the load has {between:,.0f} s between two events of a "
                "session (sessionSeconds / eventsPerSession), so sessions fall apart; raise it"
            )
            yield Finding(path, message)
        if job.events.retention_hours * SECONDS_PER_HOUR < session.gap_seconds:
            message = (
                f"got {job.events.retention_hours} h, which is shorter than a session's gap of "
                f"{session.gap_seconds} s, so a job that starts again cannot read its open sessions; raise it"
            )
            yield Finding((*JOBS, index, "events", "retentionHours"), message)


@rule
def topics_agree(spec: Spec) -> Iterator[Finding]:
    """Check that jobs which read the same topic describe it alike, and that none reads dead letters."""
    dead = {job.topic_names.dead_letters: job.name for _, job in usable(spec.streaming)}
    first: dict[str, StreamingJob] = {}
    for index, job in usable(spec.streaming):
        path, events = (*JOBS, index, "events"), job.events
        more = events.more_topics
        for topic, place in (
            (events.topic, ("topic",)),
            *((each, ("moreTopics", n)) for n, each in usable(more)),
        ):
            if topic in dead:
                message = f"got {quote(topic)}, the dead letters of job {quote(dead[topic])}; rename it"
                yield Finding((*path, *place), message)
            other = first.setdefault(topic, job).events
            if (other.partitions, other.retention_hours) != (events.partitions, events.retention_hours):
                message = (
                    f"job {quote(first[topic].name)} reads {quote(topic)} too, and declares other "
                    "partitions or another retention; declare the same"
                )
                yield Finding(path, message)
        for number, topic in usable(more):
            if topic in (events.topic, *more[:number]):
                yield Finding((*path, "moreTopics", number), f"got {quote(topic)} twice; remove it")


@rule
def events_wait_in_their_topic(spec: Spec) -> Iterator[Finding]:
    """Check that Kafka keeps events for longer than they may wait for a model."""
    for index, job in usable(spec.streaming):
        kept = job.events.retention_hours * SECONDS_PER_HOUR
        if job.max_age_seconds > kept:
            message = (
                f"got {job.max_age_seconds} s, but Kafka keeps events for {kept:,} s "
                "(events.retentionHours), and a job that starts again reads them from there; lower it, or "
                "raise the retention"
            )
            yield Finding((*JOBS, index, "maxAgeSeconds"), message)


@rule
def existing_topics_have_partitions(spec: Spec) -> Iterator[Finding]:
    """Check that the partitions of a topic are stated if the Kafka cluster exists already."""
    if spec.kafka is None or spec.kafka.existing is None:
        return
    for index, job in usable(spec.streaming):
        if job.events.partitions is None:
            message = (
                f"the number of partitions of {quote(job.events.topic)} in your cluster is not known; state "
                "it as 'partitions'"
            )
            yield Finding((*JOBS, index, "events"), message)


@rule
def answers_build_on_a_cache(spec: Spec) -> Iterator[Finding]:
    """Check that the model of a streaming job is routed KV-aware, because its prompts grow."""
    for index, job in usable(spec.streaming):
        model = _model(spec, job)
        if model and model.routing.kv_aware is None:
            routing = f"routing: {{{model.routing.chosen}: {{}}}}"
            alone = model.engine.chosen in STACK_OF_ENGINE
            remedy = f"{model.engine.chosen} has no router, vllm has one" if alone else "route it 'kvAware'"
            message = (
                f"{quote(job.model)} has {quote(routing)}, so a session's next prompt seldom "
                f"meets the cache of its former one; {remedy}"
            )
            yield Finding((*JOBS, index, "model"), message, "warning")


@rule
def signals_outlive_a_session_step(spec: Spec) -> Iterator[Finding]:
    """Check that a signal stays at least until the next event of its session is expected."""
    for index, job in usable(spec.streaming):
        between = job.load.session_seconds / job.load.events_per_session
        if job.signal.ttl_seconds < between:
            message = (
                f"got {job.signal.ttl_seconds} s, but {between:,.0f} s pass between two events of a session, "
                "so the signal is gone before the next one; raise it"
            )
            yield Finding((*JOBS, index, "signal", "ttlSeconds"), message, "warning")


def _model(spec: Spec, job: StreamingJob) -> Model | None:
    return next((model for model in spec.models if model.name == job.model), None)


_KAFKA: Path = ("spec", "kafka")
#: Express clusters have three zones, with as many brokers in each:
#: https://docs.aws.amazon.com/msk/latest/developerguide/msk-broker-types-express.html
ZONES_OF_EXPRESS = 3
_ARN_REGION = 3


@rule
def brokers_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that the size of Express brokers is one that AWS offers."""
    express = spec.kafka.express if spec.kafka else None
    sizes = list(catalog.broker_sizes())
    if express and express.instance_type not in sizes:
        kind = express.instance_type
        message = f"got {quote(kind)}, {allowed('size', sizes)}{suggestion(kind, sizes)}"
        yield Finding((*_KAFKA, "express", "instanceType"), message)


@rule
def brokers_are_in_three_zones(spec: Spec) -> Iterator[Finding]:
    """Check that Express brokers are divided evenly among three zones."""
    express = spec.kafka.express if spec.kafka else None
    if express is None:
        return
    if express.brokers % ZONES_OF_EXPRESS:
        message = (
            f"got {express.brokers}, each of {ZONES_OF_EXPRESS} zones has as many brokers; set a multiple of "
            f"{ZONES_OF_EXPRESS}"
        )
        yield Finding((*_KAFKA, "express", "brokers"), message)
    if spec.environment.region not in catalog.regions():
        return
    zones = len(platform_zones(spec.environment))
    if zones < ZONES_OF_EXPRESS:
        message = (
            f"Express brokers need {ZONES_OF_EXPRESS} zones, the platform has {zones}; name more in "
            "environment.availabilityZones, or use 'kafka.existing'"
        )
        yield Finding((*_KAFKA, "express"), message)


@rule
def cluster_is_in_the_region(spec: Spec) -> Iterator[Finding]:
    """Check that an existing Kafka cluster is in the region of the platform."""
    existing = spec.kafka.existing if spec.kafka else None
    if existing is None:
        return
    region = existing.cluster_arn.split(":")[_ARN_REGION]
    if region != spec.environment.region:
        message = (
            f"is in {quote(region)}, the platform is in {quote(spec.environment.region)}; name a cluster of "
            "the platform's region"
        )
        yield Finding((*_KAFKA, "existing", "clusterArn"), message)
