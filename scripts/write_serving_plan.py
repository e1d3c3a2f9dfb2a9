"""Write the serving plan of quickstart-g6e as JSON, for review: a changed argument of an engine shows there.

``make generate`` runs this script.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final

from inference_blueprints.loading import load_blueprint
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan

FILE: Final = root() / "tests" / "unit" / "serving" / "quickstart_plan.json"


def as_json(value: Any) -> Any:
    """Return a part of a plan as JSON can have it; a record without fields is its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: as_json(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return fields or type(value).__name__
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    return [as_json(item) for item in value] if isinstance(value, tuple) else value


def main() -> None:
    """Write the file."""
    plan = build_plan(load_blueprint("quickstart-g6e").blueprint)
    FILE.write_text(json.dumps(as_json(plan), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
