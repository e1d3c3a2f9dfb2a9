"""The pages about using one construct say what there is."""

from __future__ import annotations

from inference_blueprints.resources import root

CONSTRUCTS = root() / "constructs"


def test_each_capability_has_a_row_and_an_example() -> None:
    """It turns red when a capability is added without an example, or when its row is missing."""
    packages = {file.parent.name for file in (CONSTRUCTS / "inference_constructs").glob("*/__init__.py")}
    assert {file.stem for file in (CONSTRUCTS / "examples").glob("*.py")} == packages
    text = (CONSTRUCTS / "README.md").read_text(encoding="utf-8")
    assert [name for name in sorted(packages) if f"| `inference_constructs.{name}` |" not in text] == []


def test_the_page_shows_an_example_that_is_tested() -> None:
    """It turns red when the page's app is not the one that is synthesised from wheels."""
    page = (root() / "docs/constructs.md").read_text(encoding="utf-8")
    shown = page.partition("```python\n")[2].partition("```")[0]
    assert shown == (CONSTRUCTS / "examples/storage.py").read_text(encoding="utf-8")
