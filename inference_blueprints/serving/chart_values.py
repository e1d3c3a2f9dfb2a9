"""Values of a chart: the templates of ``helm_values/`` with the plan and what the stacks know."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jinja2
import yaml

from inference_blueprints import resources
from inference_blueprints.catalog import placement
from inference_blueprints.serving.types import (
    EnvironmentValue,
    KvCacheBucket,
    OwnAddress,
    PeerAddress,
    SecretValue,
    WeightsBucket,
)


def chart_values(chart: str, **variables: Any) -> dict[str, Any]:
    """Render ``helm_values/<chart>/values.yaml.j2``.

    Each value passes through ``tojson``, so that no string can change the YAML around it; CDK tokens are
    strings like any other. A null would be lost on CDK's way to Helm: a template leaves the key out instead.

    Parameters
    ----------
    chart
        Key of ``helm_values/charts.yaml``, such as ``dynamo-model``.
    **variables
        What the template's first line names; for ``dynamo-model`` it is ``deployment``, a `DeploymentPlan`,
        for one that streams a mirrored model ``weights_bucket``, and for one whose workers share KV cache
        ``kv_cache_bucket``, names of buckets.

    Returns
    -------
    dict[str, Any]
        The values, to be given to Helm.

    Raises
    ------
    jinja2.UndefinedError
        If the template needs a variable that is not given.
    jinja2.TemplateNotFound
        If the chart has no values template.
    """
    values = yaml.load(
        _environment().get_template(f"{chart}/values.yaml.j2").render(variables), yaml.CSafeLoader
    )
    return dict(values)


def _environment() -> jinja2.Environment:
    """Return the template language: strict, and with the names that pods and nodes agree on."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(resources.helm_values_directory()),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the templates are YAML; `tojson` escapes
    )
    environment.policies["json.dumps_kwargs"] = {"sort_keys": True, "default": _refuse}
    environment.globals.update(
        accelerators_label=placement.ACCELERATORS_LABEL,
        pool_label=placement.POOL_LABEL,
        system_architecture=placement.SYSTEM_ARCHITECTURE,
        efa_label=placement.EFA_LABEL,
        efa_label_value=placement.EFA_LABEL_VALUE,
    )
    environment.filters.update(environment=_environment_entries, secrets=_secrets)
    return environment


def _refuse(value: object) -> Any:
    """Refuse what JSON has no form for; an undefined variable says its own name."""
    if isinstance(value, jinja2.Undefined):
        str(value)
    raise TypeError(f"got {type(value).__name__}, which is no value of a chart")


def _environment_entries(values: Mapping[str, EnvironmentValue]) -> list[dict[str, str | bool]]:
    """Turn environment values into the chart's entries, in the order of their names."""
    return [_environment_entry(name, values[name]) for name in sorted(values)]


def _environment_entry(name: str, value: EnvironmentValue) -> dict[str, str | bool]:
    """Turn one value into what the chart knows; a secret is found under the variable's own name."""
    match value:
        case SecretValue():
            return {"name": name, "secret": name}
        case OwnAddress():
            return {"name": name, "ownAddress": True}
        case WeightsBucket():
            return {"name": name, "weightsBucket": True}
        case KvCacheBucket():
            return {"name": name, "kvCacheBucket": True}
        case PeerAddress():
            raise ValueError(
                f"process '{value.process}' cannot be addressed: Dynamo's workers are found by discovery"
            )
        case str():
            return {"name": name, "value": value}


def _secrets(environments: Iterable[Mapping[str, EnvironmentValue]]) -> list[dict[str, str]]:
    """Return every secret of some processes once, by the variable that takes it."""
    found = {
        name: value.arn
        for environment in environments
        for name, value in environment.items()
        if isinstance(value, SecretValue)
    }
    return [{"key": key, "arn": found[key]} for key in sorted(found)]
