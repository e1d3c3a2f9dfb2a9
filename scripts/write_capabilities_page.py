"""Write the tables of docs/weights-and-gpus.md: what each engine runs in which format on which GPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from generated_files import fill_section, markdown_table, rewrite

import inference_catalog as catalog
from inference_blueprints.report.tables import TextTable
from inference_blueprints.resources import root
from inference_catalog.capabilities import EngineSupport, FormatSupport, capabilities, engine_support

PAGE: Final = root() / "docs" / "weights-and-gpus.md"
_WORDS: Final = {"refused": "no", "unknown": "?"}


def page_text(page: str) -> str:
    """Return the page with new tables."""
    return fill_section(page, "capabilities", "\n\n".join(_parts()))


def _parts() -> Iterator[str]:
    """Yield the tables of each engine."""
    heading = ("GPU", "instances", "capability", "architecture")
    yield markdown_table(TextTable("", heading, (), tuple(_gpus())))
    for support in engine_support().values():
        yield f"## {support.name} {support.release}"
        yield f"Read: {support.source}."
        yield markdown_table(_table("weights", support.weights))
        if support.attention:
            yield markdown_table(_table("attention / type of the KV cache", support.attention))
        yield "\n".join(_notes(support))


def _gpus() -> Iterator[tuple[str, ...]]:
    """Yield each GPU with its instance families."""
    families: dict[str, list[str]] = {}
    for kind in catalog.instance_types().values():
        if kind.accelerator and kind.accelerator.compute_capability:
            families.setdefault(kind.accelerator.name, []).append(kind.family)
    names = capabilities()
    known = catalog.accelerators()
    for name in sorted(families, key=lambda name: (_order(known[name].compute_capability), name)):
        capability = known[name].compute_capability or ""
        yield name, ", ".join(dict.fromkeys(families[name])), capability, names[capability]


def _order(capability: str | None) -> float:
    return float(capability or 0)


def _table(title: str, rows: Mapping[str, FormatSupport]) -> TextTable:
    gpus: dict[str, list[str]] = {capability: [] for capability in capabilities()}
    for name, _, capability, _ in _gpus():
        gpus[capability].append(name)
    headings = [f"{', '.join(names)} ({capability})" for capability, names in gpus.items()]
    cells = tuple((name, *(_cell(row, each) for each in gpus)) for name, row in rows.items())
    return TextTable("", (title, *headings), (), cells)


def _cell(row: FormatSupport, capability: str) -> str:
    verdict = row.verdict(capability)
    if verdict != "runs":
        return _WORDS[verdict]
    return ("fast" if capability in row.fast else "runs") + (" !" if capability in row.wrong else "")


def _notes(support: EngineSupport) -> Iterator[str]:
    """Yield a line per row with what is to be known, and its source."""
    for row in (*support.weights.values(), *support.attention.values()):
        said = [
            f"refused: it {row.refusal}" if row.refusal else "",
            row.note,
            *(f"on {capability}: {text}" for capability, text in row.wrong.items()),
        ]
        words = ". ".join(each for each in said if each)
        yield f"- `{row.name}`: {words}{'. ' if words else ''}Source: {row.source}"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
