"""Write the tables of docs/choosing.md that compare the price of one model on several kinds of instances.

They are between ``<!-- instances: MODEL -->`` and ``<!-- end of instances -->``: what `blueprints tune`
prints for a workload of 1,000 and 200 tokens, with the prices of the reference region. ``make generate`` runs
this script.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from generated_files import markdown_table, rewrite

from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.tuning.accelerator_comparison import compare_instances, comparison_table
from inference_blueprints.report.pricing.rates import prices_for
from inference_blueprints.spec.types import Model
from inference_catalog.catalogue import REFERENCE_REGION

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "choosing.md"
_BLUEPRINT: Final = "quickstart-g6e"
#: What the models are compared for; keys as in a blueprint.
_USE: Final = {
    "workload": {"inputTokens": 1000, "outputTokens": 200, "peakRequestsPerSecond": 5},
    "objectives": {"timeToFirstTokenP90Ms": 2000, "timePerOutputTokenP90Ms": 50},
}
_PLACE: Final = re.compile(r"(<!-- instances: (\S+) -->\n).*?(<!-- end of instances -->)", re.DOTALL)


def page_text(page: str) -> str:
    """Return the page with new tables."""
    return _PLACE.sub(lambda found: f"{found[1]}\n{_text(found[2])}\n\n{found[3]}", page)


def _text(model: str) -> str:
    """Return the table of a model with its notes."""
    blueprint = load_blueprint(_BLUEPRINT).blueprint
    spec = blueprint.spec
    compared = Model.model_validate(
        {
            **spec.models[0].model_dump(by_alias=True, exclude_none=True, exclude_defaults=True),
            "weights": {"huggingFace": model},
            **_USE,
        }
    )
    changed = blueprint.model_copy(update={"spec": spec.model_copy(update={"models": [compared]})})
    table = comparison_table(compare_instances(changed, 0, prices_for(REFERENCE_REGION)))
    notes = "\n".join(f"- {note}" for note in table.notes)
    return f"{markdown_table(table)}\n\n{notes}"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
