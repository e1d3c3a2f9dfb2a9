"""`blueprints init`: what it asks, what it writes, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from inference_blueprints.cli import init_command
from inference_blueprints.cli.options import ExitCode
from inference_blueprints.resources import root
from tests.unit.command_run import blueprints

GIVEN = ("--use", "chat", "--model", "qwen3-8b", "--gpu", "L40S", "--region", "us-west-2", "--name", "mine")


def in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(init_command, "_in_a_terminal", lambda: True)


def test_what_init_writes_is_valid_and_its_schema_line_leads_to_the_schema(tmp_path: Path) -> None:
    assert blueprints("init", "quickstart-g6e", "own/mine.yaml", "--name", "mine", folder=tmp_path).code == 0
    mine = tmp_path / "own/mine.yaml"
    assert blueprints("validate", str(mine), folder=tmp_path).code == 0
    shipped = (root() / "blueprints/quickstart-g6e.yaml").read_text()
    assert mine.read_text() == shipped.replace("metadata: {name: quickstart}", "metadata: {name: mine}")
    first_line = mine.read_text().splitlines()[0]
    schema = mine.parent / first_line.partition("$schema=")[2]
    jsonschema.validate(yaml.safe_load(mine.read_text()), json.loads(schema.read_text()))


def test_a_copy_has_the_rates_that_its_blueprint_names(tmp_path: Path) -> None:
    """Red if the copy cannot be read, because its files stayed in the library, or files of others go."""
    words = ("init", "ads-reference", "own/mine.yaml", "--name", "mine")
    (tmp_path / "own/rates").mkdir(parents=True)
    theirs = tmp_path / "own/rates/shopper.csv"
    theirs.write_text("0,1\n")
    refused = blueprints(*words, folder=tmp_path)
    assert (refused.code, "shopper.csv: already exists" in refused.err) == (1, True)
    assert (theirs.read_text(), [*theirs.parent.iterdir()]) == ("0,1\n", [theirs])
    theirs.unlink()
    assert blueprints(*words, folder=tmp_path).code == 0
    assert blueprints("validate", "own/mine.yaml", folder=tmp_path).code == 0


def test_init_asks_for_a_name_and_keeps_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy with the name of its example turns this red: two engineers deploy one platform."""
    for words, said in (
        ((), "--name is missing: name your platform with it, for example --name my-platform; two platforms"),
        (("--name", "My_Platform"), "--name: got 'My_Platform', expected up to 40 lower-case letters"),
    ):
        refused = blueprints("init", "quickstart-g6e", "mine.yaml", *words, folder=tmp_path)
        assert (refused.code, refused.err.count("\n")) == (1, 1)
        assert refused.err.startswith(said)
    assert list(tmp_path.iterdir()) == []
    in_a_terminal(monkeypatch)
    asked = blueprints("init", "quickstart-g6e", "mine.yaml", folder=tmp_path, given="mine\n")
    assert (asked.code, "Name of your platform" in asked.out) == (0, True)
    assert yaml.safe_load((tmp_path / "mine.yaml").read_text())["metadata"] == {"name": "mine"}


def test_init_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mine")
    refused = blueprints("init", "quickstart-g6e", "mine.yaml", "--name", "mine", folder=tmp_path)
    assert refused.code == 1
    assert refused.err == "mine.yaml: already exists; choose another file, or remove it first\n"
    assert (tmp_path / "mine.yaml").read_text() == "mine"
    assert list(tmp_path.iterdir()) == [tmp_path / "mine.yaml"]


def test_init_of_a_misspelt_name_writes_nothing(tmp_path: Path) -> None:
    refused = blueprints("init", "quickstart-g6", "mine.yaml", "--name", "mine", folder=tmp_path)
    assert refused.code == 1
    assert "did you mean 'quickstart-g6e'?" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_options_become_a_valid_file_named_after_the_platform(tmp_path: Path) -> None:
    """A file named after an example, and options in another spelling that are refused, turn this red."""
    ran = blueprints("init", *GIVEN, folder=tmp_path)
    assert (ran.code, ran.out) == (0, "wrote mine.yaml; next: blueprints plan mine.yaml\n")
    assert ran.err.startswith("mine in us-west-2: 2 x l40s on g6e.xlarge, ")
    written = yaml.safe_load((tmp_path / "mine.yaml").read_text())
    assert written["metadata"] == {"name": "mine"}
    assert written["spec"]["models"][0]["weights"] == {"huggingFace": "Qwen/Qwen3-8B"}
    jsonschema.validate(written, json.loads((tmp_path / "schema/blueprint.v1alpha1.json").read_text()))
    assert blueprints("validate", "mine.yaml", folder=tmp_path).code == 0


def test_without_a_terminal_all_missing_options_are_named_at_once(tmp_path: Path) -> None:
    ran = blueprints("init", "mine.yaml", "--model", "qwen3-8b", folder=tmp_path)
    assert ran.code == ExitCode.FAILED
    assert ran.err.startswith("--use, --gpu, --region, --name are missing, and there is no terminal to ask; ")
    assert list(tmp_path.iterdir()) == []


def test_the_example_of_a_use_has_a_model_of_that_use(tmp_path: Path) -> None:
    """An example that is refused when it is followed turns this red."""
    ran = blueprints("init", "--use", "images", folder=tmp_path)
    example = ran.err.partition("for example `blueprints ")[2].partition("`")[0]
    assert blueprints(*example.split(), folder=tmp_path).code == 0


def test_a_file_that_exists_is_refused_before_anything_is_planned(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").touch()
    ran = blueprints("init", *GIVEN, folder=tmp_path)
    assert (ran.code, ran.err.count("\n")) == (ExitCode.FAILED, 1)
    assert ran.err.startswith("mine.yaml: already exists")


def test_all_wrong_options_are_named_at_once_with_the_nearest_value(tmp_path: Path) -> None:
    wrong = ("--use", "chat", "--model", "qwen3-8", "--gpu", "l40s", "--region", "us-west-9", "--name", "My")
    ran = blueprints("init", *wrong, "-o", "json", folder=tmp_path)
    errors = {each["file"]: each["message"] for each in json.loads(ran.out)["errors"]}
    assert (ran.code, sorted(errors)) == (ExitCode.FAILED, ["--model", "--name", "--region"])
    assert "did you mean 'Qwen/Qwen3-8B'?" in errors["--model"]
    assert errors["--region"].endswith("did you mean 'us-west-2'?")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--gpu", "l4s", "GPUs are 'l4', 'a10g', 'l40s'"),
        ("--gpu", "t4g", "vllm takes bfloat16 only on 8.0 and newer"),
        ("--gpu", "trainium2", "which is no GPU; GPUs are"),
        ("--model", "z-image-turbo", "makes images; take it with the use 'images'"),
        ("--use", "chats", "uses are 'chat', 'batch', 'stream', 'images'; did you mean 'chat'?"),
    ],
)
def test_a_wrong_option_says_what_is_allowed(option: str, value: str, said: str, tmp_path: Path) -> None:
    words = [value if GIVEN[index - 1] == option else each for index, each in enumerate(GIVEN)]
    ran = blueprints("init", *words, folder=tmp_path)
    assert (ran.code, ran.err.count("\n")) == (ExitCode.FAILED, 1)
    assert ran.err.startswith(f"{option}: got '{value}'")
    assert said in ran.err


def test_questions_have_defaults_and_answers_are_checked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong answer that ends the questions, or that is noticed after the next one, turns this red."""
    in_a_terminal(monkeypatch)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    answers = "\nqwen3-88b\n?\nqwen3-32b\n\nl4s\n\n\nMine\nmine\n"
    ran = blueprints("init", folder=tmp_path, given=answers)
    assert ran.code == 0, ran.err
    assert "zai-org/GLM-5-FP8\n" in ran.err
    assert ran.out.count("Model; ") == 3
    assert ran.out.count("GPU; ") == 2
    assert ran.out.count("Error: ") == 4  # of wrong answers, also of an empty name; `?` is none
    spec = yaml.safe_load((tmp_path / "mine.yaml").read_text())["spec"]
    assert spec["environment"] == {"region": "us-west-2"}
    assert spec["models"][0]["weights"] == {"huggingFace": "Qwen/Qwen3-32B"}
    assert spec["pools"][0]["name"] == "l40s"


def test_an_interruption_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """typer raises the same for Ctrl-C and for the end of the input, which is what comes here."""
    in_a_terminal(monkeypatch)
    ran = blueprints("init", "mine.yaml", folder=tmp_path, given="\n\n")
    assert ran.code == ExitCode.INTERRUPTED
    assert list(tmp_path.iterdir()) == []


def test_a_copy_takes_no_options_of_a_new_file(tmp_path: Path) -> None:
    ran = blueprints("init", "quickstart-g6e", "--name", "mine", "--gpu", "l4", folder=tmp_path)
    assert ran.code == ExitCode.FAILED
    assert ran.err.startswith("got the blueprint quickstart-g6e and --gpu; a copy keeps its model and pools.")
    assert blueprints("init", "quickstart-g6e", "--name", "mine", folder=tmp_path).code == 0
    assert (tmp_path / "mine.yaml").is_file()
