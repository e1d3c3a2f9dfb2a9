"""A documented command of the AWS command line, held to AWS's own model of the operation."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import botocore.session
import jmespath
from botocore import xform_name
from botocore.model import OperationModel, Shape
from botocore.validate import ParamValidator

#: An identifier of a version of a secret, which has at least 32 characters.
_VERSION: Final = str(uuid.UUID(int=0))


@dataclass(frozen=True)
class AwsCommand:
    """Service, operation, the options but for those of the output, and what is shown of the answer."""

    service: str
    operation: str
    options: Mapping[str, Sequence[str]]
    query: str = ""

    @classmethod
    def of(cls, words: Sequence[str]) -> AwsCommand:
        """Return the command of these words, which begin with `aws`."""
        _, service, operation, *rest = (_VERSION if word == "VERSION" else word for word in words)
        options: dict[str, list[str]] = {}
        for word in rest:
            if word.startswith("--"):
                values = options.setdefault(word.removeprefix("--"), [])
            elif options:
                values.append(word)
        query = " ".join(options.pop("query", []))
        for name in ("output", "max-items"):
            options.pop(name, None)
        return cls(service, operation, options, query)

    def parameters(self) -> dict[str, Any]:
        """Return the options as the operation takes them.

        Raises KeyError if the service has no such operation, or the operation no such option. Raises
        ValueError if a value has the wrong type, or a required option is missing.
        """
        shape = self._model().input_shape
        members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
        found: dict[str, Any] = {}
        for option, values in self.options.items():
            if option.startswith("no-") and members[option.removeprefix("no-")][1].type_name == "boolean":
                found[members[option.removeprefix("no-")][0]] = False
                continue
            name, member = members[option]
            if member.type_name == "list":
                found[name] = [_item(value, member.member) for value in values]
            elif member.type_name == "boolean":
                found[name] = True
            else:
                found[name] = int(values[0]) if member.type_name == "integer" else values[0]
            allowed = member.metadata.get("enum")
            if allowed and found[name] not in allowed:
                raise ValueError(f"{option}: got {found[name]}, allowed are {', '.join(allowed)}")
        report = ParamValidator().validate(found, shape)
        if report.has_errors():
            raise ValueError(report.generate_report())
        return found

    def shown(self) -> Any:
        """Return what the query shows of an answer that has every member."""
        return jmespath.search(self.query, _full(self._model().output_shape)) if self.query else None

    def _model(self) -> OperationModel:
        model = botocore.session.get_session().get_service_model(self.service)
        names = {xform_name(name, "-"): name for name in model.operation_names}
        return model.operation_model(names[self.operation])


def _item(value: str, shape: Shape) -> Any:
    """Return an item of a list. A structure is written in the short form of the command line.

    https://docs.aws.amazon.com/cli/latest/userguide/cli-usage-shorthand.html
    """
    if shape.type_name != "structure":
        return value
    parts = dict(part.split("=", 1) for part in value.split(","))
    lists = {name for name, member in shape.members.items() if member.type_name == "list"}
    return {name: [part] if name in lists else part for name, part in parts.items()}


def _full(shape: Shape, above: tuple[str, ...] = ()) -> Any:
    """Return a value of a shape with every member and one item in each list."""
    if shape.name in above:
        return None
    within = (*above, shape.name)
    if shape.type_name == "structure":
        return {name: _full(member, within) for name, member in shape.members.items()}
    return [_full(shape.member, within)] if shape.type_name == "list" else "x"
