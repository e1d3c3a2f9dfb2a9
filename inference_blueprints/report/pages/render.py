"""Renders self-contained pages without scripts, fonts or requests, in a light or dark colour scheme."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_SHARED = Path(__file__).parent


def render_page(template: Path, **values: Any) -> str:
    """Render a template that extends ``base.html.j2``.

    template: The template file, with the blocks ``title``, ``header`` and ``main``.
    values: Values of its variables. Text is escaped. A variable without a value is an error.
    Returns: An HTML document.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template.name).render(**values)
