"""A documented command of the AWS command line, held to AWS's own model of the operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import botocore.session
from botocore import xform_name
from botocore.validate import ParamValidator


@dataclass(frozen=True)
class AwsCommand:
    """Service, operation, and the options but for those of the output."""

    service: str
    operation: str
    options: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, words: Sequence[str]) -> AwsCommand:
        """Return the command of these words, which begin with `aws`."""
        _, service, operation, *rest = words
        options: dict[str, list[str]] = {}
        for word in rest:
            if word.startswith("--"):
                values = options.setdefault(word.removeprefix("--"), [])
            elif options:
                values.append(word)
        for name in ("query", "output", "max-items"):
            options.pop(name, None)
        return cls(service, operation, options)

    def parameters(self) -> dict[str, Any]:
        """Return the options as the operation takes them.

        Raises
        ------
        KeyError
            If the service has no such operation, or the operation no such option.
        ValueError
            If a value has the wrong type, or a required option is missing.
        """
        model = botocore.session.get_session().get_service_model(self.service)
        names = {xform_name(name, "-"): name for name in model.operation_names}
        shape = model.operation_model(names[self.operation]).input_shape
        members = {xform_name(name, "-"): (name, member) for name, member in shape.members.items()}
        found: dict[str, Any] = {}
        for option, values in self.options.items():
            name, member = members[option]
            if member.type_name == "list":
                found[name] = list(values)
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
