"""Two names of one model, behind Dynamo's real frontend: requests may have either, and the list has both."""

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_local.processes.child_processes import ProcessGroup
from inference_local.serving.local_serving import LocalServing

PUBLIC = "Qwen/Qwen3-8B"
NAMES = ("qwen3-8b", PUBLIC)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """Yield a client of quickstart's model, which has the published name too."""
    folder: Path = tmp_path_factory.mktemp("names")
    document = yaml.safe_load((resources.blueprints_directory() / "quickstart-g6e.yaml").read_text("utf-8"))
    document["spec"]["models"][0]["publicName"] = PUBLIC
    (folder / "blueprint.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    blueprint = load_blueprint(str(folder / "blueprint.yaml")).blueprint
    with (
        ProcessGroup() as processes,
        LocalServing(build_plan(blueprint), blueprint, folder / "run", processes) as serving,
    ):
        (endpoint,) = serving.start(lambda _: None)
        assert endpoint.shown_name == PUBLIC
        yield openai.OpenAI(base_url=endpoint.base_url, api_key="none", max_retries=0)
        serving.check()


def test_the_list_has_both_names_and_no_other(client: openai.OpenAI) -> None:
    assert {each.id for each in client.models.list()} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_requests_may_have_either_name(client: openai.OpenAI, name: str) -> None:
    """Dynamo 1.6.1 answers an alias with the first name."""
    answer = client.chat.completions.create(
        model=name, messages=[{"role": "user", "content": "hello"}], max_tokens=4
    )
    assert (answer.model, answer.usage and answer.usage.completion_tokens) == ("qwen3-8b", 4)
    pieces = client.completions.create(model=name, prompt="hello", max_tokens=4, stream=True)
    assert {piece.model for piece in pieces} == {"qwen3-8b"}


@pytest.mark.parametrize("name", NAMES)
def test_answers_with_a_structure_come_under_either_name(client: openai.OpenAI, name: str) -> None:
    answer = client.chat.completions.create(
        model=name,
        messages=[{"role": "user", "content": "hello"}],
        response_format={"type": "json_object"},
        max_tokens=40,
    )
    assert answer.model == "qwen3-8b"
    content = answer.choices[0].message.content
    assert content is not None
    assert content.startswith("{")


def test_other_names_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(
            model="Qwen/Qwen3-4B", messages=[{"role": "user", "content": "hello"}], max_tokens=4
        )
