"""What runbooks ask the cluster for are resources that the real API server has."""

from __future__ import annotations

import pytest

from inference_blueprints.deployment.kubernetes.kubectl import Kubectl
from inference_blueprints.resources import root
from tests.unit.docs.test_commands import commands

_RUNBOOKS = sorted((root() / "docs/runbooks").glob("*.md"))
#: Dynamo's operator brings its definition, and neither is to be had here: tests/unit/docs has its name.
_OF_DYNAMO = "dynamographdeploymentscalingadapters"
_QUESTIONS = {
    " ".join(words): words[1:]
    for page in _RUNBOOKS
    for words in commands(page)
    if words[:2] == ["kubectl", "get"] and words[2] != _OF_DYNAMO
}


@pytest.mark.parametrize("question", _QUESTIONS)
def test_the_api_server_knows_what_is_asked_for(question: str, kubectl: Kubectl) -> None:
    kubectl.run(*_QUESTIONS[question])
