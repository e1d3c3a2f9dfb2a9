"""Files of all kinds, and what loading one costs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.spec.source import describe, find, shipped
from inference_contracts.errors import BlueprintError, UserError

RIGHT = (Path(__file__).parent / "spec" / "base.yaml").read_bytes()


def refusal(path: Path) -> str:
    """Return the one line that a file earns."""
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(path))
    [problem] = caught.value.problems
    assert problem.file == str(path)
    return str(problem).removeprefix(str(path))


@pytest.mark.parametrize("name", shipped())
def test_shipped_blueprints_load(name: str) -> None:
    loaded = load_blueprint(name)
    assert loaded.file == str(shipped()[name])
    assert describe(shipped()[name])


def test_a_right_file_loads(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT)
    assert load_blueprint(str(file)).blueprint.metadata.name == "shop"


@pytest.mark.parametrize(
    "change", [lambda text: b"\xef\xbb\xbf" + text, lambda text: text.replace(b"\n", b"\r\n")]
)
def test_editors_of_other_systems_may_save_it(tmp_path: Path, change: object) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(change(RIGHT))  # type: ignore[operator]
    assert load_blueprint(str(file)).warnings == ()


def test_positions_survive_carriage_returns(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(b"\xef\xbb\xbf" + RIGHT.replace(b"\n", b"\r\n").replace(b"{name: shop}", b"{nme: shop}"))
    with pytest.raises(BlueprintError) as caught:
        load_blueprint(str(file))
    assert [(problem.line, problem.column) for problem in caught.value.problems] == [(3, 1), (3, 12)]


def test_a_name_that_is_misspelt() -> None:
    with pytest.raises(UserError, match=r"^quickstart-g6: neither a .*; did you mean 'quickstart-g6e'\?$"):
        find("quickstart-g6")


def test_an_empty_name() -> None:
    with pytest.raises(UserError, match=r"^neither .* 'batch-g6e', .* more$"):
        find("")


def test_a_missing_file(tmp_path: Path) -> None:
    assert (
        refusal(tmp_path / "none.yaml")
        == ": does not exist; check the path, or use a shipped blueprint (`blueprints list`)"
    )


def test_a_missing_folder(tmp_path: Path) -> None:
    assert "does not exist" in refusal(tmp_path / "none" / "none.yaml")


def test_a_file_for_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file" / "own.yaml") == ": cannot be read: Not a directory"


def test_a_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path) == ": is a directory; name the YAML file of a blueprint"


def test_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert refusal(tmp_path / "pipe.yaml") == ": is not a regular file; name the YAML file of a blueprint"


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT)

    def refuse(*_arguments: object, **_options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(file) == ": cannot be read: Permission denied"


def test_a_name_that_no_file_can_have(tmp_path: Path) -> None:
    assert "cannot be read" in refusal(tmp_path / ("x" * 300 + ".yaml"))


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").touch()
    assert refusal(tmp_path / "own.yaml") == ": is empty; copy a shipped blueprint with `blueprints init`"


def test_ten_megabytes_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT + b"# filler\n" * 1_200_000)
    monkeypatch.setattr("inference_blueprints.spec.composer.parse", None)
    assert refusal(file) == ": is larger than 1 MiB, which is the maximum; a blueprint has a few kilobytes"


def test_bytes_that_are_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT.replace(b"{name: shop}", b"{name: caf\xe9}"))
    assert refusal(file) == ":3:21: got byte 0xe9, which is not UTF-8; save the file as UTF-8"


def test_utf_16(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT.decode().encode("utf-16"))
    assert refusal(file) == ":1:1: got byte 0xff, which is not UTF-8; save the file as UTF-8"


@pytest.mark.parametrize(("character", "name"), [("\0", "U+0000"), ("\x1b", "U+001B"), ("\u2028", "U+2028")])
def test_characters_that_editors_do_not_show(tmp_path: Path, character: str, name: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_bytes(RIGHT.replace(b"{name: shop}", f"{{name: s{character}hop}}".encode()))
    assert refusal(file) == f":3:19: got the invisible character {name}; remove it"


def test_deep_nesting_ends_no_process(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("a: " + "[" * 500_000, encoding="utf-8")
    assert ":1:36: a[0]" in refusal(file)


@pytest.mark.thorough
def test_loading_imports_nothing_heavy() -> None:
    program = (
        "import sys; from inference_blueprints.loading import load_blueprint;"
        "load_blueprint('quickstart-g6e');"
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
    )
    command = [sys.executable, "-c", program]
    output = subprocess.run(command, check=True, capture_output=True, text=True)
    loaded = set(output.stdout.split())
    assert {"inference_blueprints", "pydantic", "yaml"} <= loaded
    assert not loaded & {"aws_cdk", "jsii", "jsonschema", "rich", "typer", "jinja2", "numpy", "boto3"}
