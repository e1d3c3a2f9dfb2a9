"""Streaming jobs: a Kafka cluster with its topics, and the applications that turn events into signals."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.streaming.enrichment_application import (
        ApplicationSize,
        EnrichmentApplication,
    )
    from inference_constructs.streaming.event_cluster import IAM_PORT, EventCluster, ExpressCluster, JobEvents
    from inference_constructs.streaming.history_isolation import OwnedHistory, isolate_histories
    from inference_constructs.streaming.job_program import JobProgram
    from inference_constructs.streaming.job_tools import JobTools
    from inference_constructs.streaming.stream_monitoring import (
        ShownStream,
        StreamAlarms,
        StreamDashboard,
        StreamMetrics,
    )
    from inference_constructs.streaming.streaming_setup import StreamingSetup
    from inference_constructs.streaming.streaming_store import StreamingStore
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "IAM_PORT",
    "ApplicationSize",
    "EnrichmentApplication",
    "EventCluster",
    "ExpressCluster",
    "JobEvents",
    "JobProgram",
    "JobTools",
    "OwnedHistory",
    "ShownStream",
    "StreamAlarms",
    "StreamDashboard",
    "StreamMetrics",
    "StreamingSetup",
    "StreamingStore",
    "isolate_histories",
]
