"""Write ``tests/templates/recorded/``: templates of some shipped blueprints, for review and for other tests.

``make generate`` runs this script. A changed stack, construct or argument shows there as a difference.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Final

from generated_files import write_all

from inference_blueprints.spec.source import shipped
from tests.templates.support import Templates
from tests.templates.synthesis import write_templates

FOLDER: Final = Path(__file__).parent.parent / "tests" / "templates" / "recorded"
#: Together they have every property that any shipped blueprint has, except some chart values of LMCache, of
#: images in requests and of groups of nodes. `tests/unit/serving` and `tests/charts` check these.
RECORDED: Final = ("batch-g6e", "capacity-and-health", "ecs-g6e", "llm-d-disaggregated", "p5en-cluster")


def recorded_text(templates: Templates) -> str:
    """Return the text of a file: each template by the name of its stack, without the hashes of assets."""
    return json.dumps(templates.by_stack, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write every file, and remove those of blueprints that are not recorded any more."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {
            FOLDER / f"{name}.json": recorded_text(write_templates(shipped()[name], Path(folder) / name))
            for name in RECORDED
        }
    write_all(texts, FOLDER.iterdir())


if __name__ == "__main__":
    main()
