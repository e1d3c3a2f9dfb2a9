"""Thinking by default and a chat template of one's own, behind Dynamo's real frontend."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.tokenizer import random_text
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing

_TOKENS, _THOUGHT, _NO_THOUGHT = 50, 30, 7


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """Yield a client of quickstart's model with a template that shows in the length of prompts who thinks."""
    folder: Path = tmp_path_factory.mktemp("chat")
    document = yaml.safe_load((resources.blueprints_directory() / "quickstart-g6e.yaml").read_text("utf-8"))
    document["spec"]["models"][0]["chat"] = {"thinking": True, "template": "own.jinja"}
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    thought, none = random_text(_THOUGHT, seed=1), random_text(_NO_THOUGHT, seed=2)
    (folder / "own.jinja").write_text(
        "{% for each in messages %}{{ each.content }}{% endfor %}"
        f"{{% if enable_thinking %}} {thought}{{% else %}} {none}{{% endif %}}",
        encoding="utf-8",
    )
    blueprint = load_blueprint(str(folder / "blueprint.yaml")).blueprint
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, folder / "run", processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        yield openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)
        serving.check()


def _prompt_tokens(client: openai.OpenAI, **more: Any) -> int:
    usage = client.chat.completions.create(
        model="qwen3-8b",
        messages=[{"role": "user", "content": random_text(_TOKENS, seed=3)}],
        max_tokens=1,
        extra_body=more,
    ).usage
    assert usage is not None
    return usage.prompt_tokens


def test_prompts_are_those_of_the_template_and_of_its_switch(client: openai.OpenAI) -> None:
    unsaid = _prompt_tokens(client)
    assert unsaid == _prompt_tokens(client, chat_template_kwargs={"enable_thinking": True})
    without = _prompt_tokens(client, chat_template_kwargs={"enable_thinking": False})
    assert unsaid - without == _THOUGHT - _NO_THOUGHT
