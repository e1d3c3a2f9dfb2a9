"""Write ``values.schema.json`` of our charts from the types of their values. ``make generate`` runs it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel

from inference_blueprints.render.eks.batch_worker_values import BatchWorkerValues
from inference_blueprints.render.eks.front_door_values import FrontDoorValues
from inference_blueprints.render.eks.model_values import (
    DirectModelValues,
    DynamoModelValues,
    LlmDModelValues,
    WeightsMirrorValues,
)
from inference_blueprints.serving.stacks import STACKS
from inference_catalog.charts import charts_directory

_Schema = dict[str, Any]


def values_schema(chart: str) -> _Schema:
    """Return the JSON Schema of a chart's values.

    Pydantic's schema is adapted to `rendered_values`: keys are camelCase, other keys are not allowed, and a
    field with its default value is left out.
    """
    schema = _undocumented(TypeAdapter(_VALUES[chart]).json_schema(ref_template="#/definitions/{model}"))
    definitions = schema.pop("$defs", {})
    for each in (schema, *definitions.values()):
        _close(each)
    schema["properties"]["global"] = {"type": "object", "description": "Helm adds it to every chart."}
    narrow = _NARROWED.get(chart)
    if narrow:
        narrow(schema, definitions)
    draft = "http://json-schema.org/draft-07/schema#"
    return {
        "$schema": draft,
        "title": f"Values of the chart {chart}",
        **schema,
        "definitions": dict(sorted(definitions.items())),
    }


def schema_charts() -> tuple[str, ...]:
    """Return the charts whose schemas are generated."""
    return tuple(_VALUES)


def _close(schema: _Schema) -> None:
    """Rename the keys, allow no others, and refuse explicit defaults and nulls."""
    nullable = {
        name for name, content in schema["properties"].items() if {"type": "null"} in content.get("anyOf", ())
    }
    schema["properties"] = {
        to_camel(name): _without_default(content) for name, content in schema["properties"].items()
    }
    for content in schema["properties"].values():
        if "patternProperties" in content:
            content["additionalProperties"] = False
    schema["required"] = [to_camel(name) for name in schema.get("required", []) if name not in nullable]
    schema["additionalProperties"] = False


def _without_default(content: _Schema) -> _Schema:
    """Return the schema of a field without null and its default, which are never rendered."""
    default = content.pop("default", None)
    if {"type": "null"} in content.get("anyOf", ()):
        [content] = [each for each in content["anyOf"] if each != {"type": "null"}]
        return dict(content)
    if default is None:
        return content
    if content["type"] == "array":
        return {**content, "minItems": 1}
    return {**content, "minimum": default + 1}


def _undocumented(schema: Any) -> Any:
    """Return a schema without pydantic's titles and without docstrings."""
    if isinstance(schema, list):
        return [_undocumented(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _undocumented(each) for name, each in content.items()}
        if key == "properties"
        else _undocumented(content)
        for key, content in schema.items()
        if key not in ("title", "description")
    }


def _with_library(schema: _Schema) -> None:
    schema["properties"]["model-library"] = {
        "type": "object",
        "description": "Helm adds it for the dependency.",
    }


def _dynamo_model(schema: _Schema, definitions: dict[str, _Schema]) -> None:
    """Leave out the arguments of followers, which Dynamo's operator adds."""
    _with_library(schema)
    schema["properties"]["framework"] = {"enum": sorted(STACKS["dynamo"].frameworks.values())}
    del definitions["ProcessValues"]["properties"]["followerArguments"]
    _admit_callers_only(definitions)
    _compile_nothing(definitions)
    _request_devices(definitions)


def _llm_d_model(schema: _Schema, definitions: dict[str, _Schema]) -> None:
    """Require a router and workers."""
    _servers(schema, definitions)
    _compile_nothing(definitions)
    _request_devices(definitions)
    schema["properties"]["processes"]["minItems"] = 2


def _compile_nothing(definitions: dict[str, _Schema]) -> None:
    """Leave out compiled artefacts: engines that compile run only without a router."""
    del definitions["ArtefactsValues"], definitions["ProcessValues"]["properties"]["artefacts"]


def _admit_callers_only(definitions: dict[str, _Schema]) -> None:
    """Allow only the sidecar that admits known callers: it reads the certificate, and the chart mounts it."""
    definitions["Sidecar"]["required"].append("certificates")
    definitions["Sidecar"]["properties"]["certificates"] = {"const": True}


def _request_devices(definitions: dict[str, _Schema]) -> None:
    """Require the name of a device: engines on processors run only without a router."""
    definitions["Accelerators"]["required"].insert(0, "resourceName")


def _direct_model(schema: _Schema, definitions: dict[str, _Schema]) -> None:
    """Allow one kind of workers, each on one node."""
    _servers(schema, definitions)
    schema["properties"]["processes"]["maxItems"] = 1
    for name in ("followerArguments", "nodes", "zone"):
        del definitions["ProcessValues"]["properties"][name]
    _admit_callers_only(definitions)


def _without_files(definitions: dict[str, _Schema], values: str) -> None:
    """Forbid variables that are paths of files: the chart mounts none."""
    variables = definitions[values]["properties"]["environment"]["items"]
    variables["anyOf"].remove({"$ref": "#/definitions/FileEntry"})


def _servers(schema: _Schema, definitions: dict[str, _Schema]) -> None:
    """Require a pause before each process stops. Programs beside an engine's own server get no files."""
    _with_library(schema)
    for values in ("NodeCacheValues", "ArtefactsValues"):
        _without_files(definitions, values)
    definitions["ProcessValues"]["properties"]["preStopSeconds"]["minimum"] = 1


def _batch_worker(schema: _Schema, _definitions: dict[str, _Schema]) -> None:
    _with_library(schema)
    schema["oneOf"] = [{"required": ["replicas"]}, {"required": ["scaling"]}]


def _front_door(schema: _Schema, _definitions: dict[str, _Schema]) -> None:
    schema["oneOf"] = [{"required": ["replicas"]}, {"required": ["scaling"]}]


_VALUES: Mapping[str, type] = MappingProxyType(
    {
        "dynamo-model": DynamoModelValues,
        "llm-d-model": LlmDModelValues,
        "direct-model": DirectModelValues,
        "weights-mirror": WeightsMirrorValues,
        "batch-worker": BatchWorkerValues,
        "front-door": FrontDoorValues,
    }
)
#: Constraints that a chart adds to its type.
_NARROWED: Mapping[str, Callable[[_Schema, dict[str, _Schema]], None]] = MappingProxyType(
    {
        "dynamo-model": _dynamo_model,
        "llm-d-model": _llm_d_model,
        "direct-model": _direct_model,
        "batch-worker": _batch_worker,
        "front-door": _front_door,
    }
)


def schema_text(chart: str) -> str:
    """Return the text of a chart's schema."""
    return json.dumps(values_schema(chart), indent=2) + "\n"


def main() -> None:
    """Write every schema."""
    for name in schema_charts():
        (charts_directory() / name / "values.schema.json").write_text(schema_text(name), encoding="utf-8")


if __name__ == "__main__":
    main()
