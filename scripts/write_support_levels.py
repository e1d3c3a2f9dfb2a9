"""Write the tables of docs/support-levels.md: the features with their proofs, and the shipped blueprints."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

from generated_files import fill_section, markdown_table, rewrite

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.tables import TextTable
from inference_blueprints.resources import root
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.used_features import support_of
from inference_catalog import Feature, Proof
from inference_catalog.support_levels import HOW, LEVELS, NEVER_ON_HARDWARE

PAGE: Final = root() / "docs" / "support-levels.md"


def page_text(page: str, features: Iterable[Feature]) -> str:
    """Return the page with new tables.

    features: The features in the order of the catalogue.
    """
    ordered = sorted(features, key=lambda feature: LEVELS.index(feature.level))
    rows = tuple(
        (
            feature.name,
            ", ".join(f"`{key}`" for key in feature.keys),
            feature.level,
            _proofs(feature, before_release=False),
            _proofs(feature, before_release=True),
        )
        for feature in ordered
    )
    names = ("feature", "key below `spec`", "level", "proven in every run", "proven before a release")
    supports = {name: support_of(load_blueprint(name).blueprint.spec) for name in shipped()}
    blueprints = tuple(
        (f"[{name}](blueprints/{name}.md)", support.level, ", ".join(support.names("experimental")))
        for name, support in supports.items()
    )
    page = fill_section(
        page, "kinds", markdown_table(TextTable("", ("proof", "meaning"), (), tuple(HOW.items())))
    )
    never = "" if any(feature.on_hardware for feature in ordered) else f"{NEVER_ON_HARDWARE}\n\n"
    page = fill_section(page, "features", f"{never}{markdown_table(TextTable('', names, (), rows))}")
    columns = ("blueprint", "level", "experimental features")
    return fill_section(page, "blueprints", markdown_table(TextTable("", columns, (), blueprints)))


def _proofs(feature: Feature, *, before_release: bool) -> str:
    found = [proof for proof in feature.proofs if proof.before_release == before_release]
    return "<br>".join(map(_proof, found))


def _proof(proof: Proof) -> str:
    text = f"**{proof.how}**: {proof.shows} ({_links(proof.tests)})"
    return f"{text}; faults: {_links(proof.faults)}" if proof.faults else text


def _links(files: Iterable[str]) -> str:
    return ", ".join(f"[{Path(name).stem.removeprefix('test_')}](../{name})" for name in files)


def main() -> None:
    """Write the page."""
    rewrite(PAGE, partial(page_text, features=catalog.features()))


if __name__ == "__main__":
    main()
