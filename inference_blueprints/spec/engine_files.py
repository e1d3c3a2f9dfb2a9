"""Releases of engines next to a blueprint: the flags that `blueprints engines record` read from a wheel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_blueprints.spec.model_files import read_json
from inference_catalog.catalogue import shipped
from inference_contracts.errors import Problem, UserError

#: Folder of recorded releases, next to the blueprint.
ENGINES_FOLDER = "engines"
#: Engines whose releases can be recorded, by the blueprint's key (`ENGINE_WHEELS` of the catalogue, which
#: reads wheels and so is imported by few commands).
RECORDABLE = ("sglang", "vllm")
_AGAIN = "make the file again with `blueprints engines record`"


def engine_of_file(document: Any, path: Path) -> catalog.Engine:
    """Return the release that a file holds.

    document: Content of the file.
    path: The file, for messages.
    Raises UserError if a field is missing or wrong.
    """
    name = document.get("name") if isinstance(document, dict) else None
    if name not in RECORDABLE:
        raise UserError(
            f"{path}: name: got {str(name)[:80]!r}, allowed are {', '.join(RECORDABLE)}; {_AGAIN}"
        )
    try:
        return shipped().engine_entry(name, document, path)
    except (TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{path}: a flag is not written as the command writes it; {_AGAIN}") from error
    except catalog.CatalogueError as error:
        raise UserError(f"{error}; {_AGAIN}") from error


def read_engines(folder: Path) -> tuple[dict[str, dict[str, catalog.Engine]], list[Problem]]:
    """Return the releases in a folder by engine and release, and a problem for each file that is wrong."""
    found: dict[str, dict[str, catalog.Engine]] = {}
    problems = []
    for path in sorted(folder.glob("*.json")):
        try:
            engine = engine_of_file(read_json(path), path)
        except UserError as error:
            problems.append(Problem(str(path), 0, 0, "", str(error).removeprefix(f"{path}: ")))
        else:
            found.setdefault(engine.name, {})[engine.version] = engine
    return found, problems
