"""Values of third-party charts, rendered from the templates of ``helm_values/``."""

from __future__ import annotations

from typing import Any, Final

import jinja2
import yaml

from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Batch
from inference_catalog import node_facts
from inference_catalog.charts import helm_values_directory
from inference_contracts import metric_labels
from inference_contracts.door_names import DOOR_JOB
from inference_contracts.records import dataclass

# The kinds of objects that KEDA scales on a platform, for its permissions.


@dataclass(frozen=True, slots=True)
class ScaledKind:
    """A kind with the subresource ``scale``: its API group, and the plural that permissions name."""

    group: str
    resource: str


DEPLOYMENT: Final = ScaledKind("apps", "deployments")
_ADAPTER: Final = ScaledKind("nvidia.com", "dynamographdeploymentscalingadapters")
_GROUP: Final = ScaledKind("leaderworkerset.x-k8s.io", "leaderworkersets")


def scaled_kinds(plan: ServingPlan, batch: Batch | None) -> frozenset[ScaledKind]:
    """Return the kinds of all elastic workers and of batch workers that follow their queue.

    batch: Section of the blueprint. None without batch.
    """
    kinds = {
        _ADAPTER if deployment.stack == "dynamo" else _GROUP if process.nodes > 1 else DEPLOYMENT
        for model in plan.models
        for deployment in model.deployments
        for process in deployment.workers
        if process.scaling
    }
    if batch and batch.workers.ecs is None and batch.workers.min < batch.workers.max:
        kinds.add(DEPLOYMENT)
    return frozenset(kinds)


def chart_values(chart: str, **variables: Any) -> dict[str, Any]:
    """Render ``helm_values/<chart>/values.yaml.j2``.

    Each value passes through ``tojson``, so that no string can change the YAML around it. CDK tokens are
    ordinary strings. The CDK drops null values, so a template leaves the key out instead.

    chart: Key of ``helm_values/charts.yaml``, such as ``karpenter``.
    **variables: The variables in the first line of the template.
    Returns: The values for Helm.
    Raises jinja2.UndefinedError if a variable of the template is missing. Raises jinja2.TemplateNotFound if
        the chart has no values template.
    """
    values = yaml.load(
        _environment().get_template(f"{chart}/values.yaml.j2").render(variables), yaml.CSafeLoader
    )
    return dict(values)


def _environment() -> jinja2.Environment:
    """Return the environment of the templates, in which an undefined variable is an error."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(helm_values_directory()),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the templates are YAML; `tojson` escapes
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "default": _refuse}
    environment.globals.update(
        efa_label=node_facts.EFA_LABEL,
        efa_label_value=node_facts.EFA_LABEL_VALUE,
        device_plugin_label=node_facts.DEVICE_PLUGIN_LABEL,
        device_plugin_label_value=node_facts.DEVICE_PLUGIN_LABEL_VALUE,
        neuron_scheduler=node_facts.NEURON_SCHEDULER,
        target_labels=metric_labels.CLUSTER_SOURCES,
        node_labels=metric_labels.NODE_SOURCES,
        metrics_port_label=metric_labels.METRICS_PORT_SOURCE,
        metrics_scheme_label=metric_labels.METRICS_SCHEME_SOURCE,
        kubernetes_exporter=metric_labels.KUBERNETES_EXPORTER,
        autoscaler_names=metric_labels.AUTOSCALER_NAMES,
        own_namespace=metric_labels.PROMETHEUS_NAMESPACE,
        jobs={
            "serving": metric_labels.SERVING_JOB,
            "gpu": metric_labels.GPU_JOB,
            "keda": metric_labels.KEDA_JOB,
            "kubernetes": metric_labels.KUBERNETES_JOB,
            "door": DOOR_JOB,
        },
    )
    return environment


def _refuse(value: object) -> Any:
    """Raise an error for a type that JSON does not have. For an undefined variable, it contains the name."""
    if isinstance(value, jinja2.Undefined):
        str(value)
    raise TypeError(f"got {type(value).__name__}, which a chart value cannot have")
