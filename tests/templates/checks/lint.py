"""cfn-lint over every template of a platform."""

from __future__ import annotations

from functools import cache

from cfnlint.config import ConfigMixIn, ManualArgs
from cfnlint.decode.decode import decode_str
from cfnlint.match import Match
from cfnlint.runner import Runner

from tests.templates.support import Templates

#: Rules that do not hold for what CDK writes.
IGNORED = {
    "W3010": "the zones' names are given so that synthesis asks no account",
    "W3005": "CDK writes dependencies out that references imply already",
}
#: Actions that AWS has and its list of actions, which cfn-lint reads, has not.
UNLISTED_ACTIONS = {
    "describealarmcontributors": "https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/"
    "API_DescribeAlarmContributors.html",
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
    found = [*errors, *_runner(region).validate_template(document or {})]
    return [str(match) for match in found if not _is_unlisted_action(match)]


def _is_unlisted_action(match: Match) -> bool:
    """Return whether the finding is an action of `UNLISTED_ACTIONS`."""
    starts = tuple(f"{action!r} is not one of" for action in UNLISTED_ACTIONS)
    return bool(match.rule.id == "W3037" and match.message.startswith(starts))


@cache
def _runner(region: str) -> Runner:
    """Read cfn-lint's rules once: that takes longer than to apply them."""
    return Runner(ConfigMixIn(**ManualArgs(regions=[region], ignore_checks=list(IGNORED))))
