"""Near real time: events from Kafka become sessions, sessions become prompts, answers become signals."""

from typing import TYPE_CHECKING

from pydantic import Field, JsonValue

from inference_blueprints.spec.section import (
    BootstrapServers,
    BrokerType,
    Choice,
    EventField,
    KafkaTopic,
    MskClusterArn,
    Name,
    Section,
    SecurityGroupId,
)
from inference_blueprints.spec.sections.workloads.keys import StreamedRequests

if TYPE_CHECKING:
    from inference_contracts.streaming_job import TopicNames


class ExpressKafka(Section):
    """An Amazon MSK cluster with Express brokers, which the platform creates."""

    # The default quota of brokers of a cluster, and at least one in each of three zones:
    # https://docs.aws.amazon.com/msk/latest/developerguide/limits.html#msk-express-quota
    brokers: int = Field(default=3, ge=3, le=30)
    """Number of brokers: the same in each of three availability zones."""
    instance_type: BrokerType = "express.m7g.large"
    """Size of the brokers."""


class ExistingKafka(Section):
    """An Amazon MSK cluster that exists, with TLS and IAM access control. Its topics exist too."""

    cluster_arn: MskClusterArn
    """ARN of the cluster."""
    bootstrap_servers: BootstrapServers
    """Brokers for clients with IAM access control: `host:port`, with commas between them."""
    security_group_id: SecurityGroupId
    """Security group of the brokers. The platform adds a rule that lets its jobs in."""


class Kafka(Choice):
    """The cluster that holds the events."""

    express: ExpressKafka | None = None
    """Create a cluster with Express brokers."""
    existing: ExistingKafka | None = None
    """Use a cluster that exists."""


class EventTopic(Section):
    """The events of a job: one JSON object per record."""

    topic: KafkaTopic
    """Topic of the events. With `kafka.express`, the platform creates it."""
    more_topics: list[KafkaTopic] = Field(default_factory=list, max_length=9)
    """Further topics with events of the same form, such as those of another producer. Partitions and
    retention are those of `topic`."""
    partitions: int | None = Field(default=None, ge=1, le=10_000)
    """Partitions of each topic. Without it, `blueprints plan` chooses the number. It can only grow."""
    retention_hours: int = Field(default=24, ge=1, le=8784)
    """Hours for which Kafka keeps events. With `kafka.existing`, the cluster decides."""
    examples: list[dict[str, JsonValue]] = Field(min_length=1, max_length=20)
    """Events as your application sends them. They test the template and give the size of an event, and
    `blueprints verify` sends the first one."""


class EventSession(Section):
    """How events become sessions."""

    key: EventField
    """Field of an event that names the owner of the session, such as the id of a shopper."""
    time: EventField = "time"
    """Field with the time of the event: milliseconds since 1970, or ISO 8601."""
    id: EventField | None = None
    """Field that identifies an event, to drop duplicates. Without it, every event counts."""
    gap_seconds: int = Field(default=1800, ge=1, le=86_400)
    """Seconds without an event after which a session ends."""
    debounce_millis: int = Field(default=500, ge=0, le=60_000)
    """Milliseconds from the first new event to the prompt. Events within them share one prompt."""
    max_events: int = Field(default=40, ge=1, le=1000)
    """Events that a session keeps. Older ones are left out of later prompts."""


class SessionPrompt(Section):
    """The prompt of a session."""

    # The limit of batch's templates.
    template: str = Field(min_length=1, max_length=65_536)
    """Template in the language of batch's templates. Its variables are `events`, the new events in the order
    of their times, and `session`, the key. Each version of the prompt appends to the former one."""
    system: str | None = Field(default=None, min_length=1, max_length=65_536)
    """System message before the prompt. Without it, there is none."""
    max_input_tokens: int = Field(ge=1, le=1_000_000)
    """Longest prompt, in tokens. A longer one starts again with the newer half of the events."""


class SessionAnswer(Section):
    """The answer to a prompt."""

    max_tokens: int = Field(ge=1, le=1_000_000)
    """Longest answer, in tokens."""
    json_schema: dict[str, JsonValue] | None = Field(default=None, min_length=1)
    """JSON Schema that answers follow. Without it, answers are free text."""


class WrittenSignal(Section):
    """The signal that a job writes, with the session's key as its key."""

    name: Name
    """Name of a signal in `signalStore.signals` that belongs to the team."""
    ttl_seconds: int = Field(default=3600, ge=1, le=31_622_400)
    """Seconds after which a value expires."""


class StreamLoad(Section):
    """Expected load of a job. It determines the size of the job."""

    events_per_second: float = Field(gt=0.0, le=10_000_000.0)
    """Events per second in the busiest minute."""
    events_per_session: float = Field(ge=1.0, le=100_000.0)
    """Mean number of events of a session."""
    session_seconds: float = Field(gt=0.0, le=86_400.0)
    """Mean time from the first to the last event of a session, in seconds."""
    latency_millis: int = Field(ge=1, le=600_000)
    """Expected mean time of a call to the model, in milliseconds."""


class StreamingJob(Section):
    """A job that turns the events of a topic into signals, on Managed Service for Apache Flink."""

    name: Name
    """Name of the job. It is the consumer group too, and `<name>-dead-letters` is its dead-letter topic."""
    model: Name
    """Name of the model that answers."""
    team: Name
    """Team that owns the signal."""
    events: EventTopic
    """Events that the job reads."""
    session: EventSession
    """How events become sessions."""
    prompt: SessionPrompt
    """The prompt of a session."""
    answer: SessionAnswer
    """The answer to a prompt."""
    signal: WrittenSignal
    """The signal that holds the answer."""
    deadline_millis: int = Field(default=3000, ge=100, le=600_000)
    """Milliseconds for a call with its second attempt. Then the prompt is a dead letter, unless the model
    answers nobody."""
    # A day: longer than any outage after which an answer still helps.
    max_age_seconds: int = Field(default=900, ge=0, le=86_400)
    """Seconds for which events wait while the model answers nobody, from the newest event of their session.
    Then its prompt is a dead letter. With 0, it is one at `deadlineMillis`."""
    load: StreamLoad
    """Expected load."""
    workload: StreamedRequests | None = None
    """Lengths of its requests. Without it, those of the model's `workload`, whose peak includes its calls."""
    deployments: list[Name] = Field(default_factory=list, max_length=5)
    """Names of the model's deployments that answer its calls, at an address of their own, such as `[clicks]`.
    Requests in real time go only to the others, if there are any. Without it, those behind the model's own
    address."""
    # ParallelismPerKPU x 64 KPUs, the default quota:
    # https://docs.aws.amazon.com/managed-flink/latest/java/how-scaling.html
    parallelism: int | None = Field(default=None, ge=1, le=512)
    """Parallel subtasks of each application at the start. Without it, `blueprints plan` chooses the number.
    Autoscaling may raise it while the job runs."""
    shards: int = Field(default=1, ge=1, le=16)
    """Applications that divide the partitions of the topics among themselves, for a load above the quota of
    one application. A record's key must be its session's key."""

    @property
    def topic_names(self) -> "TopicNames":
        """Names of the job's topics in Kafka."""
        from inference_contracts.streaming_job import TopicNames

        return TopicNames.of_job(self.name, self.events.topic, *self.events.more_topics)
