"""Whom alarms tell."""

from __future__ import annotations

from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_blueprints.spec.types import Alarms
from inference_constructs.observability import AlarmTopic


def people_topic(scope: Construct, alarms: Alarms | None) -> sns.ITopic:
    """Return the topic that tells people: the one of the blueprint, or a new one.

    scope: The stack that has the alarms.
    alarms: Who is told. None if nobody is: then the topic has no subscription.
    """
    if alarms is not None and alarms.topic_arn is not None:
        return sns.Topic.from_topic_arn(scope, "Topic", alarms.topic_arn)
    return AlarmTopic(scope, "People", emails=(alarms.emails or []) if alarms else []).alarm_topic
