"""Write the JSON Schema and the tables of docs/blueprint.md from the blueprint's types and rules.

``make generate`` runs this script.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from generated_files import fill_section, rewrite, write_all

from inference_blueprints.resources import schema_path
from inference_blueprints.serving.checks.serving_checks import SPEC_CHECKS
from inference_blueprints.spec import formats
from inference_blueprints.spec.rule import Rule
from inference_blueprints.spec.rule_table import all_rules
from inference_blueprints.spec.structure import Key, is_choice, json_schema, keys, schema_text, walk
from inference_blueprints.spec.types import Section

#: Comparison signs of JSON Schema's limits.
_LIMITS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_KINDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def key_tables() -> str:
    """Return a Markdown section with a table of keys for each section of a blueprint."""
    schema = json_schema()
    return "\n".join(_section(path, section, schema) for path, section, _ in walk() if keys(section))


def rule_list(further: Iterable[Rule] = ()) -> str:
    """Return a Markdown list of what the rules check, and what further checks do."""
    checks = (str(rule.__doc__).removeprefix("Check that ") for rule in (*all_rules(), *further))
    return "".join(f"- {check[0].upper()}{check[1:]}\n" for check in checks)


def _section(path: str, section: type[Section], schema: dict[str, Any]) -> str:
    """Return one section's heading, words and table."""
    properties = schema["$defs"].get(section.__name__, schema)["properties"]
    choice = " Exactly one key." if is_choice(section) else ""
    rows = [
        f"| `{key.name}` | {_kind(key, properties[key.name])} | {_default(key)} | {key.description} |\n"
        for key in keys(section).values()
    ]
    return (
        f"### `{path or 'The file'}`\n\n{section.__doc__}{choice}\n\n"
        f"| Key | Value | Without it | Meaning |\n|---|---|---|---|\n{''.join(rows)}"
    )


def _kind(key: Key, schema: dict[str, Any]) -> str:
    """Return what a key holds, in words."""
    if key.is_list:
        item = "mappings" if key.child else f"items, each {_words(schema['items'])}"
        longest = f" to {schema['maxItems']}" if "maxItems" in schema else " or more"
        return f"list of {schema.get('minItems', 0)}{longest} {item}"
    if key.has_plain_form:
        return ", or ".join("mapping" if "$ref" in form else _words(form) for form in schema["oneOf"])
    if key.child:
        return "mapping" if keys(key.child) else "`{}`"
    return _words(schema)


def _words(schema: dict[str, Any]) -> str:
    """Return a plain value's kind, form and limits."""
    if "pattern" in schema:
        return formats.DESCRIPTIONS[schema["pattern"]]
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "anyOf" in schema:
        return ", ".join(_words(member) for member in schema["anyOf"])
    if schema["type"] == "object":
        values = schema["additionalProperties"]
        # The only definition that is not a section is that of any value of JSON.
        is_any = values is True or "$ref" in values
        return f"mapping of names to: {'any value' if is_any else _words(values)}"
    limits = [f"{sign} {schema[name]:.12g}" for name, sign in _LIMITS.items() if name in schema]
    return ", ".join([_KINDS[schema["type"]], *limits])


def _default(key: Key) -> str:
    """Return what holds when the key is absent."""
    if key.required:
        return "**required**"
    default = key.field.get_default(call_default_factory=True)
    return "" if default in (None, {}, []) else f"`{json.dumps(default)}`"


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
