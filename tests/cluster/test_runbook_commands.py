"""What runbooks ask the cluster for are resources that the real API server has."""

from __future__ import annotations

import pytest

from inference_blueprints.deployment.kubernetes.kubectl import Kubectl
from inference_blueprints.resources import root
from tests.unit.docs.test_commands import commands

_RUNBOOKS = sorted((root() / "docs/runbooks").glob("*.md"))
_QUESTIONS = {
    " ".join(words): words[1:]
    for page in _RUNBOOKS
    for words in commands(page)
    if words[:2] == ["kubectl", "get"]
}


@pytest.mark.parametrize("question", _QUESTIONS)
def test_the_api_server_knows_what_is_asked_for(question: str, kubectl: Kubectl) -> None:
    kubectl.run(*_QUESTIONS[question])


def test_what_is_scaled_by_hand_can_be_scaled(kubectl: Kubectl) -> None:
    (scaled,) = [
        words[2].partition("/")[0]
        for page in _RUNBOOKS
        for words in commands(page)
        if words[:2] == ["kubectl", "scale"]
    ]
    (found,) = [
        each for each in kubectl.get("customresourcedefinitions") if each["spec"]["names"]["plural"] == scaled
    ]
    assert all("scale" in version["subresources"] for version in found["spec"]["versions"])
