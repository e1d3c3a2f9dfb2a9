"""Alarms and dashboards of a platform."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.observability.alarm_topic import AlarmTopic
    from inference_constructs.observability.container_insights import ContainerInsights
    from inference_constructs.observability.discovery_alarm import DiscoveryAlarm
    from inference_constructs.observability.kept_log_group import KeptLogGroup
    from inference_constructs.observability.metric_dashboard import (
        MetricDashboard,
        MetricPanel,
        NamedMetric,
        QueryPanel,
    )
    from inference_constructs.observability.model_canary import CanaryAlarms, ModelCanary
    from inference_constructs.observability.promql_alarms import AlarmQuery, PromqlAlarms
    from inference_constructs.observability.trace_permission import send_traces
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "AlarmQuery",
    "AlarmTopic",
    "CanaryAlarms",
    "ContainerInsights",
    "DiscoveryAlarm",
    "KeptLogGroup",
    "MetricDashboard",
    "MetricPanel",
    "ModelCanary",
    "NamedMetric",
    "PromqlAlarms",
    "QueryPanel",
    "send_traces",
]
