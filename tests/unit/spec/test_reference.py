"""The page on the blueprint says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.spec import composer, document, source
from inference_blueprints.spec.structure import descriptions, keys, walk

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "blueprint.md").read_text(encoding="utf-8")


def test_the_example_loads() -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert parse_blueprint(example, "example.yaml").blueprint.metadata.name == "quickstart"


def test_the_limits_are_the_code() -> None:
    assert f"at most {composer.MAXIMUM_NODES:,} values" in PAGE
    assert f"nests at most {composer.MAXIMUM_DEPTH} levels" in PAGE
    assert f"over {document.MAXIMUM_DIGITS} digits" in PAGE
    assert source.MAXIMUM_BYTES == 1024**2
    assert "at most 1 MiB" in PAGE


def test_every_key_has_words() -> None:
    for path, section, _ in walk():
        assert section.__doc__
        assert set(descriptions(section)) == set(section.model_fields), path
        assert all(key.description.endswith((".", "…", '".')) for key in keys(section).values()), path
