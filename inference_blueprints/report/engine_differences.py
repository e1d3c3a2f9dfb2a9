"""What differs between two releases of an engine: its own flags, their values, and model classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import inference_catalog as catalog
from inference_blueprints.serving.stacks.serving_stack import own_server_flags
from inference_blueprints.spec.engine_files import RECORDABLE, read_engines
from inference_catalog.releases import shipped_releases
from inference_contracts.errors import BlueprintError, UserError
from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of a release from an older one."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    """`added`, `removed`: Flags that only the newer or only the older release has."""
    changed: Mapping[str, str]
    """How a flag that both have differs, by flag."""
    added_classes: tuple[str, ...]
    removed_classes: tuple[str, ...]
    """`added_classes`, `removed_classes`: Model classes that only one of them registers."""

    def as_dict(self) -> dict[str, object]:
        """Return the differences with the keys of `--output json`."""
        camel = {"added_classes": "addedClasses", "removed_classes": "removedClasses"}
        return {camel.get(key, key): value for key, value in asdict(self).items()}

    def lines(self, old: catalog.Engine, new: catalog.Engine) -> list[str]:
        """Return the differences as text."""
        tables = {
            "only in the newer": self.added,
            "only in the older": self.removed,
            "differ": tuple(f"{flag} ({how})" for flag, how in self.changed.items()),
            "model classes only in the newer": self.added_classes,
            "model classes only in the older": self.removed_classes,
        }
        lines = [f"{new.name}: {_release(old)} and {_release(new)}"]
        for title, rows in tables.items():
            lines += [f"{title}: {len(rows) or 'none'}", *(f"  {row}" for row in rows)]
        return lines


def compared(old: catalog.Engine, new: catalog.Engine) -> Differences:
    """Return what differs between the flags of two releases' own servers, and between their model classes.

    old, new: Releases of one engine.
    """
    before, after = own_server_flags(old), own_server_flags(new)
    changed = {flag: _change(before[flag], after[flag]) for flag in sorted(before.keys() & after.keys())}
    classes = [_classes(each) for each in (old, new)]
    return Differences(
        added=tuple(sorted(after.keys() - before.keys())),
        removed=tuple(sorted(before.keys() - after.keys())),
        changed={flag: how for flag, how in changed.items() if how},
        added_classes=tuple(sorted(classes[1] - classes[0])),
        removed_classes=tuple(sorted(classes[0] - classes[1])),
    )


def recorded_releases(engine: str, folder: Path) -> dict[str, catalog.Engine]:
    """Return the recorded releases of an engine: those of the catalogue, and those in a folder.

    engine: ``vllm`` or ``sglang``.
    folder: Where `blueprints engines record` wrote; it need not be there.
    Raises UserError for another engine, and for a file that cannot be used.
    """
    if engine not in RECORDABLE:
        raise UserError(f"got {engine!r}, allowed are {' and '.join(RECORDABLE)}")
    beside, problems = read_engines(folder)
    if problems:
        raise BlueprintError(problems)
    return {**shipped_releases().engine_releases(engine), **beside.get(engine, {})}


def _release(engine: catalog.Engine) -> str:
    """Return a release as part of a title."""
    return (
        f"{engine.engine_version} of Dynamo {engine.version}" if engine.on_dynamo else engine.engine_version
    )


def _classes(engine: catalog.Engine) -> set[str]:
    """Return the model classes of a release: those recorded with it, else those of the table of releases."""
    history = catalog.class_histories()[engine.name]
    if engine.model_classes:
        return set(engine.model_classes)
    return {name for name in history.classes if history.has(name, engine.engine_version)}


def _change(old: catalog.Flag, new: catalog.Flag) -> str:
    """Return how a flag differs; an empty text if it does not."""
    ways = []
    if old.takes_value != new.takes_value:
        ways.append("takes a value" if new.takes_value else "takes no value")
    if old.negatable != new.negatable:
        ways.append("has" if new.negatable else "has no")
        ways[-1] += " --no- form"
    if old.choices and new.choices:
        more, less = sorted({*new.choices} - {*old.choices}), sorted({*old.choices} - {*new.choices})
        ways += [f"new values {', '.join(more)}"] if more else []
        ways += [f"without the values {', '.join(less)}"] if less else []
    return "; ".join(ways)
