"""A new section of the blueprint, added as docs/architecture.md says, works from the file to a template."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.templates.copied_library import CopiedLibrary

pytestmark = pytest.mark.thorough

SECTION = '''
"""Money that teams may spend: keys and rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.section import Name, Section
from inference_contracts.errors import Finding
from pydantic import Field

if TYPE_CHECKING:
    from inference_blueprints.spec.blueprint import Spec


class Budget(Section):
    """Money of one team."""

    team: Name
    """Name of the team."""
    usd: int = Field(ge=1)
    """Dollars in a month."""


class Budgets(Section):
    """Money that teams may spend."""

    total_usd: int = Field(ge=1)
    """Dollars of all teams in a month."""
    shares: list[Budget] = Field(min_length=1)
    """What each team may spend."""


@rule
def share_is_within_the_total(spec: Spec) -> Iterator[Finding]:
    """Check that no team may spend more than all teams."""
    if spec.budgets:
        for index, share in usable(spec.budgets.shares):
            if share.usd > spec.budgets.total_usd:
                message = f"got {share.usd}, the total is {spec.budgets.total_usd}"
                yield Finding(("spec", "budgets", "shares", index, "usd"), message)
'''

STACK = '''
"""Budgets of teams."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from inference_blueprints.spec.sections.budgets import Budgets


class BudgetsStack(cdk.Stack):
    """Keeps what teams may spend."""

    def __init__(
        self, scope: Construct, construct_id: str, *, budgets: Budgets, env: cdk.Environment
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        for share in budgets.shares:
            ssm.StringParameter(self, share.team, string_value=f"{share.usd} USD")
'''

#: The edits of docs/architecture.md for a section and a stack: file, what is there, what is added before it.
EDITS = (
    (
        "inference_blueprints/spec/blueprint.py",
        "from inference_blueprints.spec.sections.environment.keys import",
        "from inference_blueprints.spec.sections.budgets import Budgets\n",
    ),
    (
        "inference_blueprints/spec/blueprint.py",
        "\n\nclass Blueprint(Section):",
        '    budgets: Budgets | None = None\n    """Money of teams; without it they may spend any."""\n',
    ),
    (
        "stacks/platform.py",
        "from stacks.data_stack import",
        "from stacks.budgets_stack import BudgetsStack\n",
    ),
    (
        "stacks/platform.py",
        "        network = NetworkStack(",
        "        if self._spec.budgets:\n"
        '            name = stack_name(self._name, "Budgets")\n'
        "            BudgetsStack(app, name, budgets=self._spec.budgets, env=self._env)\n",
    ),
)

#: Reads one right and one broken file, and writes the JSON Schema, as the commands do.
PROGRAM = """
import json
from inference_contracts.errors import BlueprintError
from inference_blueprints.loading import load_blueprint
from write_blueprint_reference import key_tables, rule_list
from inference_blueprints.spec.structure import json_schema

warnings = [str(warning) for warning in load_blueprint("right.yaml").warnings]
try:
    load_blueprint("broken.yaml")
except BlueprintError as error:
    problems = [str(problem).split(":", 3)[3] for problem in error.problems]
print(json.dumps({
    "problems": problems, "schema": json_schema(), "reference": key_tables() + rule_list(),
    "warnings": warnings,
}))
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> CopiedLibrary:
    """A copy of the library with the section, a right file and a broken one."""
    copied = CopiedLibrary.make(
        tmp_path_factory.mktemp("library"),
        changed=("inference_blueprints", "stacks"),
        added={
            "inference_blueprints/spec/sections/budgets.py": SECTION,
            "stacks/budgets_stack.py": STACK,
        },
        edits=EDITS,
    )
    right = {"totalUsd": 900, "shares": [{"team": "ads", "usd": 500}, {"team": "seo", "usd": 400}]}
    broken = {"totalUsd": 900, "shares": [{"team": "ads", "usd": "500"}, {"team": "seo", "usd": 1000}]}
    copied.write_blueprint("right", lambda spec: spec.update(budgets=right))
    copied.write_blueprint("broken", lambda spec: spec.update(budgets=broken))
    return copied


@pytest.fixture(scope="module")
def read(copied: CopiedLibrary) -> dict[str, Any]:
    """What the copy reads from the files and writes about the section."""
    result: dict[str, Any] = json.loads(copied.run("-c", PROGRAM))
    return result


def test_a_right_file_is_valid(read: dict[str, Any]) -> None:
    assert not [warning for warning in read["warnings"] if "budgets" in warning]


def test_a_type_error_and_a_finding_of_the_rule_are_reported_together(read: dict[str, Any]) -> None:
    assert read["problems"] == [
        " spec.budgets.shares[0].usd: got '500', expected a whole number; remove the quotes",
        " spec.budgets.shares[1].usd: got 1000, the total is 900",
    ]


def test_the_schema_and_the_reference_describe_it(read: dict[str, Any]) -> None:
    definition = read["schema"]["$defs"]["Budgets"]
    assert definition["properties"]["totalUsd"]["description"] == "Dollars of all teams in a month."
    assert "### `spec.budgets.shares[]`" in read["reference"]
    assert "- No team may spend more than all teams." in read["reference"]


def test_the_app_builds_its_stack(copied: CopiedLibrary) -> None:
    template = json.loads((copied.synthesise() / "try-Budgets.template.json").read_text())
    values = {resource["Properties"]["Value"] for resource in template["Resources"].values()}
    assert values == {"500 USD", "400 USD"}
