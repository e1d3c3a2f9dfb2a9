"""Write the short plan of quickstart-g6e into README.md and docs/planning.md, as `blueprints plan` prints it.

``make generate`` runs this script.
"""

from __future__ import annotations

import io
from typing import Final

from generated_files import fill_section, rewrite
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.report.plan.short_plan import print_short_plan, warnings_of
from inference_blueprints.report.plan.summary import summarise
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan

PAGES: Final = (root() / "README.md", root() / "docs" / "planning.md")
_BLUEPRINT: Final = "quickstart-g6e"
_COLUMNS: Final = 80


def page_text(page: str) -> str:
    """Return the page with the plan."""
    loaded = load_blueprint(_BLUEPRINT)
    summary = summarise(loaded.blueprint, build_plan(loaded.blueprint))
    printed = io.StringIO()
    warnings = [*loaded.warnings, *warnings_of(summary, loaded.file)]
    print_short_plan(summary, Console(file=printed, width=_COLUMNS), _BLUEPRINT, warnings)
    return fill_section(page, "plan", f"```text\n{printed.getvalue().strip()}\n```")


def main() -> None:
    """Write the pages."""
    for page in PAGES:
        rewrite(page, page_text)


if __name__ == "__main__":
    main()
