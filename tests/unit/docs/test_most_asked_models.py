"""The table of the most asked models says truly which are in the catalogue."""

from __future__ import annotations

import re

import inference_catalog as catalog
from inference_blueprints.resources import root

_ROW = re.compile(r"^\| `([^`]+)` \| (\d+) \| (.+) \|$", re.MULTILINE)


def rows() -> list[tuple[str, int, str]]:
    page = (root() / "docs" / "catalogue.md").read_text(encoding="utf-8")
    section = page.partition("## The most asked models of 2026")[2].partition("\n## ")[0]
    return [(name, int(changes), entries) for name, changes, entries in _ROW.findall(section)]


def test_it_has_thirty_models_in_their_order() -> None:
    changes = [number for _, number, _ in rows()]
    assert len(changes) == 30
    assert changes == sorted(changes, reverse=True)


def test_entries_exist_and_what_is_missing_has_none() -> None:
    known = catalog.models()
    for name, _, entries in rows():
        if entries == "missing":
            assert name not in known
        else:
            assert set(re.findall(r"`([^`]+)`", entries)) <= known.keys()
