"""cfn-lint over every template of a platform."""

from __future__ import annotations

from functools import cache

from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.runner import Runner

from tests.templates.support import Templates

#: Rules that do not hold for what CDK writes.
IGNORED = {
    "W3010": "the zones' names are given so that synthesis asks no account",
    "W3005": "CDK writes dependencies out that references imply already",
}


def lint(templates: Templates, region: str) -> list[str]:
    """Return what cfn-lint finds, a line each; an equal template is looked at once."""
    return [
        f"{file.name}: {finding}"
        for file in sorted(templates.directory.glob("*.template.json"))
        for finding in _lint(file.read_text(encoding="utf-8"), region)
    ]


@cache
def _lint(template: str, region: str) -> list[str]:
    document, errors = decode_str(template)
    return [str(match) for match in [*errors, *_runner(region).validate_template(document or {})]]


@cache
def _runner(region: str) -> Runner:
    """Read cfn-lint's rules once: that takes longer than to apply them."""
    return Runner(ConfigMixIn(**ManualArgs(regions=[region], ignore_checks=list(IGNORED))))
