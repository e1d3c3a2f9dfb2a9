"""The AWS CLI of builds: ``python -m …aws_command SERVICE CALL --option value``.

It has what programs of `runtime/` use of it (AWS CLI User Guide, "Filtering output in the AWS CLI":
``--query`` is JMESPath, ``--output text``; "Loading a parameter from a file": ``file://``; "AWS CLI skeletons
and input files": ``--cli-input-json`` has the names of the API).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import boto3
import jmespath
from botocore.exceptions import ClientError


def main(arguments: Sequence[str]) -> None:
    """Make one call, and print its answer. Raises SystemExit if the call fails, with AWS's error."""
    service, call, *words = arguments
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    query, form = options.pop("query", None), options.pop("output", "json")
    given = json.loads(options.pop("cli-input-json", "{}"))
    parameters = {**given, **{_camel(name): _value(value) for name, value in options.items()}}
    try:
        answer = getattr(boto3.client(service), call.replace("-", "_"))(**parameters)
    except ClientError as error:
        sys.exit(str(error))
    found = jmespath.search(query, answer) if query else answer
    print(found if form == "text" else json.dumps(found, default=str))


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-"))


def _value(text: str) -> str:
    return Path(text.removeprefix("file://")).read_text() if text.startswith("file://") else text


if __name__ == "__main__":
    main(sys.argv[1:])
