"""Write the JSON Schema and the tables of docs/blueprint.md from the blueprint's types.

Run it after a change of the types or the rules: ``.venv/bin/python scripts/write_blueprint_reference.py``.
"""

from __future__ import annotations

import re
from pathlib import Path

from inference_blueprints.resources import schema_path
from inference_blueprints.serving.checks.serving_checks import SPEC_CHECKS
from inference_blueprints.spec.reference import key_tables, rule_list
from inference_blueprints.spec.schema import schema_text

PAGE = Path(__file__).resolve().parent.parent / "docs" / "blueprint.md"


def page_text(page: str) -> str:
    """Return the page with new generated parts.

    Parameters
    ----------
    page
        The current page.
    """
    for name, content in (("keys", key_tables()), ("rules", rule_list(SPEC_CHECKS))):
        pattern = re.compile(rf"(<!-- {name}: [^\n]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)

        def filled(found: re.Match[str], content: str = content) -> str:
            return f"{found[1]}\n{content}\n{found[2]}"

        page, count = pattern.subn(filled, page)
        if count != 1:
            raise SystemExit(f"{PAGE}: found {count} places for '{name}', must be 1")
    return page


def main() -> None:
    """Write both files."""
    schema_path().write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
