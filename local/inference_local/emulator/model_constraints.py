"""What every service of AWS refuses before it looks at a request: values outside the bounds of its API.

botocore has the models with these bounds. Before it sends a request, it checks types, required parameters and
smallest numbers and lengths only. The services check the other bounds too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

from botocore.model import ListShape, MapShape, OperationModel, Shape, StringShape, StructureShape

from inference_local.emulator.refusals import BEYOND_MODEL, AwsApiError

#: Error of services that do not call it ValidationException, or ValidationError in the query protocol: the
#: errors of their operations in their API references.
_CODES: Final[Mapping[str, str]] = {
    "apigateway": "BadRequestException",
    "ec2": "InvalidParameterValue",
    "ecr": "InvalidParameterException",
    "ecs": "InvalidParameterException",
    "efs": "BadRequest",
    "eks": "InvalidParameterException",
    "elasticache": "InvalidParameterValue",
    "kafka": "BadRequestException",
    "lambda": "ValidationException",
    "logs": "InvalidParameterException",
    "codebuild": "InvalidInputException",
    "glue": "InvalidInputException",
    "athena": "InvalidRequestException",
    "kinesisanalyticsv2": "InvalidArgumentException",
    "route53": "InvalidInput",
    "s3": "InvalidArgument",
    "secretsmanager": "ValidationException",
    "servicediscovery": "InvalidInput",
    "sns": "InvalidParameter",
}
_QUERY: Final = "query"
_NUMBERS: Final = ("integer", "long", "float", "double")
#: Patterns of the models are those of Java. Python writes these in another way, here with more characters.
_JAVA: Final = {"\\p{Graph}": "!-~", "\\p{L}": "\\w", "\\p{IsL}": "\\w", "\\p{Z}": "\\s", "\\p{N}": "\\d"}
#: A value of an item of DynamoDB, whose one bound is a name of 65,535 characters. It is deep and often read.
_ITEM_VALUE: Final = "AttributeValue"


def beyond_model(operation: OperationModel, parameters: Mapping[str, Any]) -> AwsApiError | None:
    """Return the error with which a service answers; None if the parameters are within its model."""
    if operation.input_shape is None:
        return None
    found = list(_violations(operation.input_shape, parameters, ""))
    if not found:
        return None
    service = operation.service_model
    code = _CODES.get(
        service.service_name, "ValidationError" if service.protocol == _QUERY else BEYOND_MODEL.code
    )
    plural = "s" if len(found) > 1 else ""
    message = BEYOND_MODEL.message.format(count=len(found), plural=plural, found="; ".join(found))
    return AwsApiError(code, message)


def _violations(shape: Shape, value: Any, path: str) -> Iterator[str]:
    match shape:
        case StructureShape() if isinstance(value, Mapping) and shape.name != _ITEM_VALUE:
            for name, member in shape.members.items():
                if value.get(name) is not None:
                    yield from _violations(member, value[name], f"{path}.{name}" if path else name)
        case ListShape() if isinstance(value, list):
            yield from _of_size(shape, value, path)
            for index, each in enumerate(value, start=1):
                yield from _violations(shape.member, each, f"{path}.{index}.member")
        case MapShape() if isinstance(value, Mapping):
            yield from _of_size(shape, value, path)
            for key, each in value.items():
                yield from _violations(shape.key, key, f"{path}.key")
                yield from _violations(shape.value, each, f"{path}.{key}.member")
        case StringShape() if isinstance(value, str):
            yield from _of_text(shape, value, path)
        case _ if shape.type_name in _NUMBERS and isinstance(value, int | float):
            yield from _of_number(shape, value, path)


def _of_size(shape: Shape, value: Any, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and len(value) < least:
        yield _constraint(value, path, f"have length greater than or equal to {least}")
    if most is not None and len(value) > most:
        yield _constraint(value, path, f"have length less than or equal to {most}")


def _of_text(shape: StringShape, value: str, path: str) -> Iterator[str]:
    yield from _of_size(shape, value, path)
    if shape.enum and value not in shape.enum:
        yield _constraint(value, path, f"satisfy enum value set: [{', '.join(shape.enum)}]")
    pattern = shape.metadata.get("pattern")
    if pattern and (compiled := compiled_pattern(pattern)) and not compiled.fullmatch(value):
        yield _constraint(value, path, f"satisfy regular expression pattern: {pattern}")


def _of_number(shape: Shape, value: float, path: str) -> Iterator[str]:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and value < least:
        yield _constraint(value, path, f"have value greater than or equal to {least}")
    if most is not None and value > most:
        yield _constraint(value, path, f"have value less than or equal to {most}")


def _constraint(value: Any, path: str, bound: str) -> str:
    parts = [part[0].lower() + part[1:] for part in path.split(".")]
    return (
        f"Value '{str(value)[:200]}' at '{'.'.join(parts)}' failed to satisfy constraint: Member must {bound}"
    )


@cache
def compiled_pattern(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern; None if it has what Python does not know."""
    for java, python in _JAVA.items():
        pattern = pattern.replace(java, python)
    try:
        return re.compile(pattern, re.DOTALL)
    except re.error:
        return None
