"""What the commands that only read blueprints print, and how they fail."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from inference_blueprints.report.picture import drawing
from inference_blueprints.resources import root, schema_path
from inference_blueprints.spec.source import shipped
from inference_catalog.support_levels import NEVER_ON_HARDWARE
from tests.unit.command_run import blueprints

BROKEN = "apiVersion: inference-blueprints/v1alpha1\nkind: Blueprnt\nmetadata: {name: x}\nspec: {}\n"


def test_list_names_every_shipped_blueprint_with_its_purpose(tmp_path: Path) -> None:
    text = blueprints("list", folder=tmp_path)
    rows = json.loads(blueprints("list", "--output", "json", folder=tmp_path).out)
    assert [row["name"] for row in rows] == list(shipped())
    *table, never = text.out.splitlines()
    heading, _, *lines = table
    assert (never, any(row["onHardware"] for row in rows)) == (NEVER_ON_HARDWARE, False)
    assert heading.split() == ["blueprint", "support", "description"]
    # A long description goes on in the next line.
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == list(shipped())
    levels = {row["name"]: row["support"] for row in rows}
    assert (levels["quickstart-g6e"], levels["trn2"]) == ("supported", "experimental")
    assert all(row["description"] and Path(row["path"]).is_file() for row in rows)


def test_show_prints_the_file_as_it_is_and_as_it_is_understood(tmp_path: Path) -> None:
    shown = blueprints("show", "quickstart-g6e", folder=tmp_path)
    assert shown.out == (root() / "blueprints/quickstart-g6e.yaml").read_text()
    understood = json.loads(blueprints("show", "quickstart-g6e", "-o", "json", folder=tmp_path).out)
    assert understood["spec"]["models"][0]["engine"] == {"vllm": {"args": {}, "env": {}}}
    jsonschema.validate(understood, json.loads(schema_path().read_text()))


def test_show_draws_a_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PNG needs fonts, which a machine may not have; test_picture.py draws a real one."""
    monkeypatch.setattr(drawing, "png", lambda svg: b"\x89PNG" + svg[:4].encode())
    assert blueprints("show", "quickstart-g6e", "--picture", "a/b.svg", folder=tmp_path).code == 0
    assert (tmp_path / "a/b.svg").read_text().startswith("<svg")
    assert blueprints("show", "quickstart-g6e", "--picture", "b.png", folder=tmp_path).code == 0
    assert (tmp_path / "b.png").read_bytes() == b"\x89PNG<svg"


def test_show_refuses_a_picture_of_another_kind_before_it_reads_the_blueprint(tmp_path: Path) -> None:
    """A file x.jpg with SVG in it turns this red."""
    refused = blueprints("show", "no-such-blueprint", "--picture", "x.jpg", folder=tmp_path)
    assert refused.code == 1
    assert refused.err == "--picture: got x.jpg; a picture is written as FILE.svg or FILE.png\n"
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    refused = blueprints("init", "quickstart-g6e", "file/mine.yaml", "--name", "mine", folder=tmp_path)
    assert refused.code == 1
    assert refused.err.count("\n") == 1
    assert "cannot be written" in refused.err


def test_validate_shows_the_errors_of_every_file(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text(BROKEN)
    checked = blueprints("validate", "a.yaml", "quickstart-g6e", "b.yaml", "c.yaml", folder=tmp_path)
    assert checked.code == 1
    assert checked.out == ""
    starts = {line.split(":")[0] for line in checked.err.splitlines() if not line.startswith("warning: ")}
    assert starts == {"a.yaml", "b.yaml", "c.yaml"}


def test_validate_for_machines(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    checked = blueprints("validate", "a.yaml", "--output", "json", folder=tmp_path)
    assert checked.code == 1
    document = json.loads(checked.out)
    assert document["valid"] is False
    assert document["errors"][0].keys() == {"file", "line", "column", "path", "message"}
    assert (document["errors"][0]["file"], document["errors"][0]["line"]) == ("a.yaml", 2)


@pytest.mark.parametrize("command", ["show", "plan", "synth", "deploy", "validate"])
def test_every_command_says_of_a_broken_file_what_validate_says(command: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(BROKEN)
    expected = blueprints("validate", "a.yaml", folder=tmp_path).err
    got = blueprints(command, "a.yaml", folder=tmp_path)
    assert (got.code, got.err) == (1, expected)


def test_an_error_of_any_command_is_json_where_json_is_asked_for(tmp_path: Path) -> None:
    got = blueprints("plan", "nowhere", "-o", "json", folder=tmp_path)
    assert got.code == 1
    (error,) = json.loads(got.out)["errors"]
    assert (error["file"], error["line"], error["column"]) == ("nowhere", 0, 0)


def test_plan_for_machines_has_the_source_of_its_prices(tmp_path: Path) -> None:
    document = json.loads(blueprints("plan", "quickstart-g6e", "-o", "json", folder=tmp_path).out)
    assert document["prices"]["region"] == "us-east-1"
    assert document["prices"]["date"]
    assert document["totals"]["acceleratorsUsed"] == 2


def test_schema_prints_the_schema(tmp_path: Path) -> None:
    assert blueprints("schema", folder=tmp_path).out == schema_path().read_text()


def test_validate_and_plan_warn_of_a_block_that_has_ended(tmp_path: Path) -> None:
    text = (root() / "blueprints/capacity-block-p5.yaml").read_text()
    block = "{id: cr-0a1b2c3d4e5f60718}"
    assert block in text
    ended = "{id: cr-0a1b2c3d4e5f60718, ends: '2001-12-08T11:30:00Z'}"
    (tmp_path / "a.yaml").write_text(text.replace(block, ended))
    assert "line 15: the block of pool 'h100' ended at" in blueprints("plan", "a.yaml", folder=tmp_path).out
    for command in (("validate",), ("plan", "--full")):
        found = blueprints(*command, "a.yaml", folder=tmp_path)
        assert found.code == 0
        assert "warning: a.yaml:15:" in found.err
        assert "the block of pool 'h100' ended at 2001-12-08 11:30 UTC" in found.err
