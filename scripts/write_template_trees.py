"""Write the syntax trees of the templates in tests/runtime/templates, which the Java tests evaluate.

``make generate`` runs this script.
"""

from __future__ import annotations

import json
from pathlib import Path

from inference_contracts.prompt_template import template_tree

FOLDER = Path(__file__).parent.parent / "tests" / "runtime" / "templates"


def trees() -> str:
    """Return the content of the file: each template that is not refused, and its tree."""
    cases = json.loads((FOLDER / "conformance.json").read_text(encoding="utf-8"))["cases"]
    texts = sorted({case["template"] for case in cases if case.get("refused") != "template"})
    lines = [f"{json.dumps(text)}: {json.dumps(template_tree(text))}" for text in texts]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> None:
    """Write the file."""
    (FOLDER / "trees.json").write_text(trees(), encoding="utf-8")


if __name__ == "__main__":
    main()
