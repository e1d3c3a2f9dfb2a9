"""Reads the parameters of requests to AWS as botocore's models of the services name them.

botocore writes requests and has no reader of them. Bodies in CBOR are not read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from botocore.loaders import create_loader
from botocore.model import ListShape, MapShape, OperationModel, ServiceModel, Shape, StructureShape

#: The emulator's names of services, where botocore has others.
_NAMES: Final = {
    "monitoring": "cloudwatch",
    "states": "stepfunctions",
    "elasticloadbalancing": "elbv2",
    "elasticfilesystem": "efs",
}
#: The services whose requests are read: those that platforms and commands use.
SERVICES: Final = frozenset(
    [
        "acm",
        "apigateway",
        "application-autoscaling",
        "athena",
        "autoscaling",
        "cloudformation",
        "cloudwatch",
        "codebuild",
        "dynamodb",
        "ec2",
        "ecr",
        "ecs",
        "efs",
        "eks",
        "elasticache",
        "elbv2",
        "events",
        "firehose",
        "glue",
        "iam",
        "kafka",
        "kinesisanalyticsv2",
        "kms",
        "lambda",
        "logs",
        "route53",
        "s3",
        "scheduler",
        "secretsmanager",
        "servicediscovery",
        "sns",
        "sqs",
        "ssm",
        "stepfunctions",
        "sts",
    ]
)
_BOOLEANS: Final = {"true": True, "false": False}


Query = Mapping[str, Sequence[str] | str]


@dataclass(frozen=True)
class SentRequest:
    """A request as it comes."""

    method: str
    path: str
    headers: Mapping[str, str]
    """With names in lower case."""
    body: bytes
    query: Query


@dataclass(frozen=True)
class Request:
    """A call of an operation."""

    operation: OperationModel
    parameters: dict[str, Any]


def service_name(emulated: str) -> str | None:
    """Return botocore's name of a service by the emulator's; None if its requests are not read."""
    name = _NAMES.get(emulated, emulated)
    return name if name in SERVICES else None


@cache
def service_model(name: str) -> ServiceModel:
    """Return botocore's model of a service.

    It has a loader of its own: a client of S3 takes the bucket out of the paths of its loader's model.
    """
    return ServiceModel(create_loader().load_service_model(name, "service-2"), name)


def read_request(name: str, sent: SentRequest) -> Request | None:
    """Return the operation of a request and its parameters; None if the service has no such operation.

    name: Service as botocore calls it.
    Raises ValueError if the body is no JSON, or no text.
    """
    model = service_model(name)
    if target := sent.headers.get("x-amz-target", "").rpartition(".")[2]:
        if target not in model.operation_names:
            return None
        content = json.loads(sent.body) if sent.body else {}
        return Request(model.operation_model(target), content if isinstance(content, dict) else {})
    if model.protocol in ("query", "ec2") or "Action" in sent.query:
        return _read_query(model, sent)
    return _read_address(model, sent)


def _read_query(model: ServiceModel, sent: SentRequest) -> Request | None:
    fields = {key: _first(value) for key, value in sent.query.items()}
    fields |= {key: value[0] for key, value in parse_qs(sent.body.decode(), keep_blank_values=True).items()}
    action = fields.get("Action", "")
    if action not in model.operation_names:
        return None
    operation = model.operation_model(action)
    is_ec2 = model.protocol == "ec2"
    read = _read_fields(operation.input_shape, "", fields, is_ec2=is_ec2) if operation.input_shape else {}
    return Request(operation, read or {})


def _read_fields(shape: Shape, prefix: str, fields: Mapping[str, str], *, is_ec2: bool) -> Any:
    """Return the value that fields with a prefix spell; None if there are none."""
    if prefix and not any(key == prefix or key.startswith(f"{prefix}.") for key in fields):
        return None
    match shape:
        case StructureShape():
            read = {}
            for name, member in shape.members.items():
                key = _field_name(name, member, is_ec2=is_ec2)
                value = _read_fields(member, f"{prefix}.{key}" if prefix else key, fields, is_ec2=is_ec2)
                if value is not None:
                    read[name] = value
            return read
        case ListShape():
            is_flat = is_ec2 or shape.serialization.get("flattened")
            start = prefix if is_flat else f"{prefix}.{shape.member.serialization.get('name', 'member')}"
            return [
                _read_fields(shape.member, f"{start}.{index}", fields, is_ec2=is_ec2)
                for index in _indexes(start, fields)
            ]
        case MapShape():
            start = prefix if shape.serialization.get("flattened") else f"{prefix}.entry"
            return {
                fields.get(f"{start}.{index}.{shape.key.serialization.get('name', 'key')}", ""): _read_fields(
                    shape.value,
                    f"{start}.{index}.{shape.value.serialization.get('name', 'value')}",
                    fields,
                    is_ec2=is_ec2,
                )
                for index in _indexes(start, fields)
            }
    return _scalar(shape, fields[prefix]) if prefix in fields else None


def _field_name(name: str, member: Shape, *, is_ec2: bool) -> str:
    if is_ec2:
        given = member.serialization.get("queryName") or member.serialization.get("name") or name
        return str(given[0].upper() + given[1:])
    if isinstance(member, ListShape) and member.serialization.get("flattened"):
        return str(member.member.serialization.get("name", member.serialization.get("name", name)))
    return str(member.serialization.get("name", name))


def _indexes(start: str, fields: Mapping[str, str]) -> list[int]:
    found = {key[len(start) + 1 :].partition(".")[0] for key in fields if key.startswith(f"{start}.")}
    return sorted(int(each) for each in found if each.isdigit())


def _scalar(shape: Shape, text: str) -> Any:
    match shape.type_name:
        case "integer" | "long" | "float" | "double":
            try:
                return float(text) if "." in text else int(text)
            except ValueError:
                return text
        case "boolean":
            return _BOOLEANS.get(text.lower(), text)
    return text


def _read_address(model: ServiceModel, sent: SentRequest) -> Request | None:
    for operation, pattern, literals in _addresses(model.service_name):
        found = pattern.fullmatch(sent.path) if operation.http["method"] == sent.method else None
        if found and all(key in sent.query for key in literals):
            parameters = _located(operation.input_shape, found, sent)
            is_json = model.protocol == "rest-json" and sent.body.lstrip()[:1] == b"{"
            if is_json and not operation.has_streaming_input:
                content = json.loads(sent.body)
                shape = operation.input_shape
                payload = shape.serialization.get("payload") if shape else None
                parameters |= {payload: content} if payload else _renamed(shape, content)
            elif model.protocol == "rest-xml" and sent.body.lstrip()[:1] == b"<":
                parameters |= _read_payload(operation, sent.body)
            return Request(operation, parameters)
    return None


@cache
def _addresses(name: str) -> tuple[tuple[OperationModel, re.Pattern[str], frozenset[str]], ...]:
    """Return each operation with the pattern of its path, and the names in the query that belong to it.

    Those with more names, and then those with longer paths, are first.
    """
    return tuple(
        sorted(_patterns(service_model(name)), key=lambda each: (-len(each[2]), -len(each[1].pattern)))
    )


def _patterns(model: ServiceModel) -> Iterator[tuple[OperationModel, re.Pattern[str], frozenset[str]]]:
    for name in model.operation_names:
        operation = model.operation_model(name)
        path, _, query = operation.http["requestUri"].partition("?")
        parts = re.split(r"\{(\w+)(\+?)\}", path)
        pattern = "".join(
            re.escape(text) + (f"(?P<{label}>{'.+' if plus else '[^/]+'})" if label else "")
            for text, label, plus in zip(parts[::3], [*parts[1::3], ""], [*parts[2::3], ""], strict=True)
        )
        yield (
            operation,
            re.compile(pattern.rstrip("/") + "/?"),
            frozenset(each.partition("=")[0] for each in query.split("&") if each),
        )


def _located(shape: StructureShape | None, found: re.Match[str], sent: SentRequest) -> dict[str, Any]:
    """Return the parameters that are in path, query and headers."""
    read: dict[str, Any] = {}
    for name, member in shape.members.items() if shape else ():
        place, key = member.serialization.get("location"), member.serialization.get("name", name)
        if place == "uri" and found.groupdict().get(key):
            read[name] = _scalar(member, unquote(found[key]))
        elif place == "querystring" and key in sent.query:
            value = sent.query[key]
            is_list = isinstance(member, ListShape) and not isinstance(value, str)
            read[name] = list(value) if is_list else _scalar(member, _first(value))
        elif place == "header" and key.lower() in sent.headers:
            read[name] = _scalar(member, sent.headers[key.lower()])
    return read


def _read_payload(operation: OperationModel, body: bytes) -> dict[str, Any]:
    """Return the parameters in a body of XML. Raises ValueError if it is none."""
    shape = operation.input_shape
    name = shape.serialization.get("payload") if shape else None
    if shape is None or operation.has_streaming_input:
        return {}
    try:
        root = ElementTree.fromstring(body)  # noqa: S314 - of clients on this machine
    except ElementTree.ParseError as error:
        raise ValueError(str(error)) from error
    if name and isinstance(shape.members[name], StructureShape):
        return {name: _read_element(shape.members[name], root)}
    found: dict[str, Any] = {} if name else _read_element(shape, root)
    return found


def _read_element(shape: Shape, element: ElementTree.Element) -> Any:
    match shape:
        case StructureShape():
            read = {}
            for name, member in shape.members.items():
                key = member.serialization.get("name", name)
                if isinstance(member, ListShape) and member.serialization.get("flattened"):
                    key = member.member.serialization.get("name", key)
                    found: Any = [_read_element(member.member, each) for each in _children(element, key)]
                else:
                    child = next(iter(_children(element, key)), None)
                    found = None if child is None else _read_element(member, child)
                if found not in (None, []):
                    read[name] = found
            return read
        case ListShape():
            key = shape.member.serialization.get("name", "member")
            return [_read_element(shape.member, each) for each in _children(element, key)]
    return _scalar(shape, element.text or "")


def _children(element: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [each for each in element if each.tag.rpartition("}")[2] == name]


def _renamed(shape: StructureShape | None, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a body under the names of the parameters."""
    names = {
        member.serialization.get("name", name): name
        for name, member in (shape.members.items() if shape else ())
        if "location" not in member.serialization
    }
    return {names.get(key, key): value for key, value in content.items()}


def _first(value: Sequence[str] | str) -> str:
    return value if isinstance(value, str) else value[0] if value else ""
