"""Write the tables of `docs/access.md`: who may call whom, and what each role may do.

``make generate`` runs this script.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

from inference_blueprints.spec.source import shipped
from tests.templates.checks.hops import HOPS, Hop, Rights, rights
from tests.templates.support import Templates
from tests.templates.synthesis import write_templates

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "access.md"
#: Together they have every role of the shipped blueprints but for Neuron, and every kind of connection.
SHOWN: Final = (
    "capacity-and-health",
    "batch-g6e",
    "streaming-g6e",
    "front-door",
    "p5en-cluster",
    "ecs-p5en-disaggregated",
    "ecs-g6e",
)


def page_text(page: str, platforms: dict[str, Templates]) -> str:
    """Return the page with new tables.

    platforms: Templates by the name of the blueprint.
    """
    page = fill_section(page, "hops", "\n".join(_hops()))
    return fill_section(page, "roles", "\n".join(_roles(platforms)))


def _hops() -> Iterator[str]:
    yield "| Caller | What is called, port | Who can connect | Authentication | TLS | Closed? |"
    yield "|---|---|---|---|---|---|"
    for hop in HOPS:
        called = hop.target if hop.port == "-" else f"{hop.target}: {hop.port}"
        cells = (hop.caller, called, hop.admitted, hop.authentication, hop.tls, _state(hop))
        yield f"| {' | '.join(cells)} |"


def _state(hop: Hop) -> str:
    if hop.closes:
        return f"**open**; would close it: {hop.closes}"
    files = dict.fromkeys(test.partition("::")[0] for test in hop.tests)
    return "closed, by " + ", ".join(f"[{Path(file).stem}](../{file})" for file in files)


def _roles(platforms: dict[str, Templates]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for name, templates in platforms.items():
        new = [each for each in rights(templates) if (_stack(each), each.role) not in seen]
        seen |= {(_stack(each), each.role) for each in new}
        for stack, roles in groupby(new, key=_stack):
            yield f"### {stack}, as in `{name}`\n"
            for role in roles:
                yield f"- **{role.role}**, taken by {role.taken_by}:"
                yield from (f"  - `{each}`" for each in role.grants or ("nothing",))
            yield ""


def _stack(role: Rights) -> str:
    """Return the name of the stack without those of the platform and the model."""
    found = re.search(r"(?:^|-)([A-Z]\w+)(?:-[\w-]+)?$", role.stack)
    return found[1] if found else role.stack


def main() -> None:
    """Write the page."""
    with tempfile.TemporaryDirectory() as folder:
        platforms = {name: write_templates(shipped()[name], Path(folder) / name) for name in SHOWN}
        rewrite(PAGE, lambda page: page_text(page, platforms))


if __name__ == "__main__":
    main()
