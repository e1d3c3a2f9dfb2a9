"""What the documentation points at exists."""

from __future__ import annotations

import re

import pytest

from inference_blueprints.resources import root

PAGES = [root() / "README.md", root() / "CONTRIBUTING.md", *sorted((root() / "docs").glob("**/*.md"))]

_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_CODE = re.compile(r"`([^`\n]+)`")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: Folders that a run makes.
_MADE = ("build/",)


def links(text: str) -> list[str]:
    return [link for link in _LINK.findall(_FENCED.sub("", text)) if "://" not in link]


def paths(text: str) -> list[str]:
    """Return the words in code spans that name a file or folder of the project."""
    rooms = {path.name for path in root().iterdir() if path.is_dir()}
    spans = _CODE.findall(_FENCED.sub("", text))
    written = [span for span in spans if re.fullmatch(r"[\w./*-]+", span) and span.split("/")[0] in rooms]
    return [span for span in written if "/" in span and not span.startswith(_MADE)]


def exists(path: str) -> bool:
    """Return whether a path, with wildcards or not, names something in the project or a package of its."""
    return any(
        list(base.glob(path.rstrip("/"))) for base in (root(), *(root() / "inference_blueprints").iterdir())
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    assert [link for link in links(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page):
    mentioned = paths(page.read_text(encoding="utf-8"))
    assert [path for path in mentioned if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_say_what_they_show(page):
    assert re.findall(r"!\[\s*\]\(", page.read_text(encoding="utf-8")) == []


def test_the_rooms_of_the_architecture_are_those_of_the_repository():
    text = (root() / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    rooms = {row for row in rows if not row.startswith("<")}
    library = {
        f"inference_blueprints/{path.name}/"
        for path in (root() / "inference_blueprints").iterdir()
        if (path / "__init__.py").exists()
    }
    assert library <= rooms
    assert all((root() / room).exists() for room in rooms)


def test_missing_targets_are_noticed():
    assert links("[a](docs/none.md) [b](https://example.org/x) [c](README.md#d)") == [
        "docs/none.md",
        "README.md",
    ]
    assert paths("`stacks/none.py` `build/run` `a/b` `blueprints validate` `stacks`") == ["stacks/none.py"]
    assert not exists("stacks/none.py")
