"""Fills a page's template: no script, no font, no request; light or dark as the reader's screen is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_SHARED = Path(__file__).parent


def render_page(template: Path, **values: Any) -> str:
    """Render a template that extends ``base.html.j2``.

    Parameters
    ----------
    template
        The file; blocks are ``title``, ``header`` and ``main``.
    values
        What it names; texts are escaped, and a name without a value is an error.

    Returns
    -------
    str
        An HTML document.
    """
    environment = Environment(
        loader=FileSystemLoader([template.parent, _SHARED]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template(template.name).render(**values)
