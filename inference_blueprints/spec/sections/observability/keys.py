"""Observability: metrics, logs and traces of the platform, and its alarms."""

from pydantic import Field

from inference_blueprints.spec.section import Choice, EmailAddress, Section, TopicArn, default


class Logs(Section):
    """Logs of pods, nodes and the control plane, in CloudWatch Logs."""

    # A rule checks it against the periods that CloudWatch Logs offers.
    retention_days: int = Field(default=30, ge=1)
    """Days for which CloudWatch Logs keeps them, one of the periods that it offers."""


class Traces(Section):
    """Traces of requests, from the router to the engine, in AWS X-Ray."""

    sample_ratio: float = Field(default=0.01, gt=0.0, le=1.0)
    """Share of requests that are traced."""


class Alarms(Choice):
    """Who is told of an alarm."""

    topic_arn: TopicArn | None = None
    """ARN of an SNS topic in the platform's region. The topic must accept messages from CloudWatch."""
    emails: list[EmailAddress] | None = Field(default=None, min_length=1, max_length=10)
    """E-mail addresses. AWS asks each one to confirm before it gets messages."""


class Canary(Section):
    """A small program that asks every model on a schedule, from inside the VPC."""

    every_minutes: int = Field(default=5, ge=1, le=60)
    """Minutes between two rounds."""


class Observability(Section):
    """Metrics, logs and traces of the platform, its dashboards and alarms."""

    logs: Logs = default({})
    """Logs of pods, nodes and the control plane."""
    traces: Traces | None = None
    """Traces of requests. Without it, there are none."""
    alarms: Alarms | None = None
    """Who is told of an alarm. Without it, alarms only show in CloudWatch."""
    canary: Canary | None = None
    """A program that asks every model on a schedule. Without it, there is none."""
