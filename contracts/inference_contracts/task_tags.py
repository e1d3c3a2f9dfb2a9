"""Tags of ECS tasks, by which Prometheus and the publisher of loads find them.

A service hands its tags on to its tasks (``propagateTags: SERVICE``), so they name what a task serves:
https://docs.aws.amazon.com/AmazonECS/latest/developerguide/ecs-using-tags.html. A task adds the address of
its metrics itself when it starts, because only it knows the port that it took.
"""

from __future__ import annotations

from typing import Final

from inference_contracts.metric_labels import POD_LABEL_PREFIX, POD_LABELS

#: Tag keys of a service by the label of metrics that they give: the same keys as the labels of pods on EKS.
LABEL_TAGS: Final = {name: f"{POD_LABEL_PREFIX}{name}" for name in POD_LABELS}
#: Tag that a task gives itself: ``<address>:<port>`` of its metrics.
METRICS_ADDRESS_TAG: Final = f"{POD_LABEL_PREFIX}metrics"
#: Tag of a service whose tasks all report at one port of their address, such as the exporter of GPU metrics.
METRICS_PORT_TAG: Final = f"{POD_LABEL_PREFIX}metrics-port"
#: Tag of a service with the Prometheus job of its tasks. Without it, `metric_labels.SERVING_JOB`.
METRICS_JOB_TAG: Final = f"{POD_LABEL_PREFIX}metrics-job"
