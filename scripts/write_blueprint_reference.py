"""Write the JSON Schema and the tables of docs/blueprint.md from the blueprint's types and rules.

``make generate`` runs this script.
"""

from __future__ import annotations

from pathlib import Path

from blueprint_reference import key_tables, rule_list
from generated_files import fill_section, rewrite, write_all

from inference_blueprints.resources import schema_path
from inference_blueprints.serving.checks.serving_checks import SPEC_CHECKS
from inference_blueprints.spec.structure import schema_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "blueprint.md"


def page_text(page: str) -> str:
    """Return the page with new generated parts."""
    for name, content in (("keys", key_tables()), ("rules", rule_list(SPEC_CHECKS))):
        page = fill_section(page, name, content.strip())
    return page


def main() -> None:
    """Write both files."""
    write_all({schema_path(): schema_text()}, schema_path().parent.iterdir())
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
