"""What the documentation points at exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from inference_blueprints.resources import root

PAGES = [*sorted(root().glob("*.md")), *sorted((root() / "docs").glob("**/*.md"))]

_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_CODE = re.compile(r"`([^`\n]+)`")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: What pages abbreviate as `…/`.
_CONSTRUCTS = "constructs/inference_constructs/"
#: Folders that a run creates.
_MADE = ("build/",)


def links(text: str) -> list[str]:
    return [link for link in _LINK.findall(_FENCED.sub("", text)) if "://" not in link]


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    headings = _HEADING.findall(_FENCED.sub("", text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def paths(text: str) -> list[str]:
    """Return the code spans that name a file or folder of the project."""
    rooms = {path.name for path in root().iterdir() if path.is_dir()}
    spans = _CODE.findall(_FENCED.sub("", text))
    spans = [span.replace("…/", _CONSTRUCTS, 1) if span.startswith("…/") else span for span in spans]
    written = [span for span in spans if re.fullmatch(r"[\w./*-]+", span) and span.split("/")[0] in rooms]
    return [span for span in written if "/" in span and not span.startswith(_MADE)]


def exists(path: str) -> bool:
    """Return whether a path or glob pattern matches below the project or below one of its packages."""
    bases = (root(), *(root() / "inference_blueprints").iterdir())
    return any(list(base.glob(path.rstrip("/"))) for base in bases)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [link for link in links(text) if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings_that_exist(page: Path) -> None:
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    found = [(link, anchor) for link, anchor in _ANCHOR.findall(text) if "://" not in link]
    wrong = [
        f"{link}#{anchor}"
        for link, anchor in found
        if anchor not in anchors((page.parent / link if link else page).read_text(encoding="utf-8"))
    ]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_paths_exist(page: Path) -> None:
    mentioned = paths(page.read_text(encoding="utf-8"))
    assert [path for path in mentioned if not exists(path)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pictures_say_what_they_show(page: Path) -> None:
    assert re.findall(r"!\[\s*\]\(", page.read_text(encoding="utf-8")) == []


def test_the_rooms_of_the_architecture_are_those_of_the_repository() -> None:
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


def test_missing_targets_are_noticed() -> None:
    assert links("[a](docs/none.md) [b](https://example.org/x) [c](README.md#d)") == [
        "docs/none.md",
        "README.md",
    ]
    assert paths("`stacks/none.py` `build/run` `a/b` `blueprints validate` `stacks`") == ["stacks/none.py"]
    assert paths("`…/eks/none.py`") == ["constructs/inference_constructs/eks/none.py"]
    assert not exists("stacks/none.py")
    assert anchors("# The `types.py`, in *short*\n```sh\n# a comment\n```\n") == {"the-typespy-in-short"}


def test_the_readme_is_short() -> None:
    """A newcomer reads it whole. What is longer belongs on a page."""
    assert len((root() / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_the_index_lists_every_page() -> None:
    """A page that nobody lists is not found."""
    index = root() / "docs" / "README.md"
    pages = {page.name for page in (root() / "docs").glob("*.md")} - {index.name}
    assert pages - set(links(index.read_text(encoding="utf-8"))) == set()
