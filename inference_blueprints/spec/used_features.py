"""Which features of the catalogue a blueprint uses, and so its support level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

import inference_catalog as catalog
from inference_blueprints.spec.section import Choice, Section
from inference_blueprints.spec.types import Spec
from inference_catalog.support_levels import OWN_ENTRY, PROCESSORS, Feature, Support, unknown_feature


def support_of(spec: Spec, features: Sequence[Feature] | None = None) -> Support:
    """Return the features that a blueprint uses.

    What a file chooses is a feature: a key of a `Choice`, and an optional section of the platform. If no
    feature of the catalogue has its key or a key above it, it is a feature without proofs.

    spec: The platform.
    features: Those of a catalogue; None for the shipped ones.
    """
    known = catalog.features() if features is None else features
    used = {
        *_values(spec.model_dump(mode="json", by_alias=True, exclude_none=True)),
        *_accelerators(spec),
        *(f"models.weights={OWN_ENTRY}" for model in spec.models if model.weights.has_own_entry),
    }
    keys = {key for feature in known for key in feature.keys}
    unknown = {
        name
        for path in _chosen(spec)
        if not any(".".join(path[:length]) in keys for length in range(1, len(path) + 1))
        for name in [".".join(path)]
    }
    return Support(
        (
            *(feature for feature in known if not used.isdisjoint(feature.keys)),
            *(unknown_feature(name) for name in sorted(unknown)),
        )
    )


def _values(value: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the key of each value, and for a simple value also the key with its value."""
    if isinstance(value, list):
        for item in value:
            yield from _values(item, path)
        return
    name = ".".join(path)
    yield name
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _values(item, (*path, key))
    else:
        yield f"{name}={str(value).lower() if isinstance(value, bool) else value}"


def _accelerators(spec: Spec) -> Iterator[str]:
    """Yield the resource of the accelerators of each pool, in place of its instance types."""
    for pool in spec.pools:
        resource = pool.types[0].device_resource
        yield f"pools.instanceTypes={resource or PROCESSORS}"


def _chosen(section: Section, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the keys of all choices except defaults, and of the optional sections of the platform."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        here = (*path, field.alias or to_camel(name))
        defaults = field.default if isinstance(field.default, dict) else None
        for part in value if isinstance(value, list) else [value]:
            if not isinstance(part, Section):
                continue
            optional = isinstance(section, Spec) and not field.is_required() and defaults is None
            if optional or isinstance(section, Choice):
                yield here
            if not (defaults and isinstance(part, Choice) and part.chosen in defaults):
                yield from _chosen(part, here)
