"""Rules on texts that EventBridge, S3 and the batch functions read: times, addresses and templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module

from inference_blueprints.spec.cron import cron_faults
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, quote, suggestion
from inference_contracts.errors import Finding

_PLACEHOLDER = "{date}"
_TEMPLATES = "inference_contracts.prompt_template"


@rule
def cron_is_accepted(spec: Spec) -> Iterator[Finding]:
    """Check that EventBridge Scheduler accepts the times of schedules."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        faults = "; ".join(cron_faults(schedule.cron))
        if faults:
            yield Finding((*_path(index), "cron"), f"got {quote(schedule.cron)}; {faults}")


@rule
def placeholders_are_known(spec: Spec) -> Iterator[Finding]:
    """Check that addresses of inputs contain no placeholder but the date, which is the only one replaced."""
    for path, address in _inputs(spec):
        for placeholder in re.findall(r"\{[^{}]*\}|[{}]", address.replace(_PLACEHOLDER, "")):
            message = (
                f"got {quote(placeholder)} in {quote(address)}, the only placeholder is '{_PLACEHOLDER}'"
            )
            yield Finding(path, message + suggestion(placeholder, [_PLACEHOLDER]))
            break


@rule
def addresses_stay_in_the_bucket(spec: Spec) -> Iterator[Finding]:
    """Check that no address has more `..` than folders before them: S3 refuses such keys."""
    # "Naming Amazon S3 objects", https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
    for path, address in (*_prefixes(spec), *_inputs(spec)):
        depth = 0
        for part in address.removeprefix("s3://").split("/")[1:]:
            depth += -1 if part == ".." else 1
            if depth < 0:
                message = f"got {quote(address)}, '..' leads out of the bucket and S3 refuses it; remove '..'"
                yield Finding(path, message)
                break


@rule
def template_is_valid(spec: Spec) -> Iterator[Finding]:
    """Check that the template of a schedule has no syntax error and uses no forbidden feature."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        template = schedule.manifest.template
        if template is None:
            continue
        # Jinja2 takes a tenth of a second to import, and few blueprints have a template.
        fault = import_module(_TEMPLATES).template_fault(template.text)
        if fault:
            message = f"is not a template that batch can use: {fault}; correct it"
            yield Finding((*_path(index), "manifest", "template", "text"), message)


def _path(index: int) -> Path:
    return ("spec", "batch", "schedules", index)


def _inputs(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the addresses of inputs with their paths."""
    for index, schedule in usable(spec.batch.schedules if spec.batch else ()):
        for place, address in usable(schedule.manifest.inputs):
            yield (*_path(index), "manifest", "inputs", place), address


def _prefixes(spec: Spec) -> Iterator[tuple[Path, str]]:
    """Yield the prefixes of teams with their paths."""
    for index, team in usable(spec.teams):
        for place, address in usable(team.data_prefixes):
            yield ("spec", "teams", index, "dataPrefixes", place), address
