"""Typed access to the fields of a ``config.json``, which may be broken in any way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal

from inference_contracts.errors import UserError
from inference_contracts.records import dataclass

# Model classes whose parameters and KV cache can be counted.


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a model class adds to the fields of its ``config.json``."""

    name: str
    """The class in ``architectures``, such as ``Qwen3ForCausalLM``."""
    source: str
    """Source of these facts."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of the fields that a ``config.json`` may leave out, as in the class of its configuration."""
    attention: Literal["gqa", "mla"] = "gqa"
    """``gqa``: keys and values per head; ``mla``: one latent vector per token."""
    bias: Literal["qkv", "qkvo"] = "qkvo"
    """Projections that have a bias if ``attention_bias`` is true."""
    windows: Literal["none", "all", "pattern", "late"] = "none"
    """Layers to which ``sliding_window`` applies if the file has no ``layer_types``: ``none``, ``all``, every
    layer except each ``sliding_window_pattern``-th (``pattern``), or those from ``max_window_layers`` on if
    ``use_sliding_window`` is true (``late``)."""
    feed_forward: str = "mlp"
    """Name of the feed-forward module in a layer of experts."""
    expert_bias: bool = False
    """Whether experts and their router have biases."""
    splits_by_image: bool = False
    scales_to_pixels: bool = False
    """`splits_by_image`, `scales_to_pixels`: As in ``Vision``."""


#: Largest number of any field. Larger ones are mistakes, and would make counting slow.
_MAXIMUM = 100_000_000
_SHOWN = 60


class ModelConfigError(UserError):
    """A configuration cannot be counted. The message has one line per problem."""


class ConfigFields:
    """The fields of one JSON object, with the problems found while reading them.

    A field that is missing or wrong yields a placeholder, so that one reading finds every problem. Call
    `check` before the values are used.

    Parameters
    ----------
    values
        The JSON object.
    place
        Its path in the file, with a dot at its end; empty for the whole file.
    problems
        Problems found so far. Sections of one file share the list.
    defaults
        Values of fields that the file leaves out.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        place: str = "",
        problems: list[str] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = values
        self._place = place
        self.problems: list[str] = [] if problems is None else problems
        self._defaults = defaults or {}

    def check(self) -> None:
        """Raise a ModelConfigError if any field was missing or wrong."""
        if self.problems:
            raise ModelConfigError("\n".join(dict.fromkeys(self.problems)))

    def report(self, message: str) -> None:
        """Add a problem of this object as a whole."""
        self.problems.append(f"{self._place.rstrip('.')}: {message}" if self._place else message)

    def wrong(self, name: str, needed: str) -> None:
        """Add a problem: the value of a field is not what is needed."""
        got = repr(self._values.get(name))
        shown = got if len(got) <= _SHOWN else f"{got[:_SHOWN]}..."
        self.problems.append(f"{self._place}{name}: got {shown}, must be {needed}")

    def has(self, name: str) -> bool:
        """Whether the file gives the field, and not as null."""
        return self._values.get(name) is not None

    def value_names(self) -> tuple[str, ...]:
        """Return the names of all fields that the file gives."""
        return tuple(self._values)

    def value(self, name: str) -> Any:
        """Return a value of any type; the default if the file does not give it."""
        return self._values[name] if self.has(name) else self._defaults.get(name)

    def number(
        self,
        *names: str,
        default: int | None = None,
        minimum: int = 1,
        maximum: int = _MAXIMUM,
        null: bool = False,
    ) -> int:
        """Return a whole number under the first of the names that is given.

        Parameters
        ----------
        names
            Names of the field in different families.
        default
            Value if no name is given. Without it, the field is required.
        minimum, maximum
            Smallest and largest value.
        null
            Whether a field with the value null means 0.
        """
        given = [each for each in names if self.has(each)]
        if null and not given and any(each in self._values for each in names):
            return 0
        name = next(iter(given or [each for each in names if self.value(each) is not None]), None)
        if name is None:
            if default is None:
                others = "".join(f" or '{other}'" for other in names[1:])
                self.problems.append(f"{self._place}{names[0]}: is missing; give '{names[0]}'{others}")
            return minimum if default is None else default
        value = self.value(name)
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            self.wrong(name, f"a whole number from {minimum} to {maximum}")
            return minimum
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a boolean."""
        value = self.value(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, "true or false")
        return bool(value)

    def items(self, name: str, kind: type) -> list[Any]:
        """Return a list of values of one type; empty if the field is not given."""
        value = self.value(name)
        if value is None:
            return []
        usable = isinstance(value, list) and all(
            isinstance(item, kind) and not isinstance(item, bool) for item in value
        )
        if not usable:
            self.wrong(name, f"a list of {'texts' if kind is str else 'whole numbers'}")
            return []
        return list(value)

    def section(self, name: str, defaults: Mapping[str, Any] | None = None) -> ConfigFields | None:
        """Return a nested object; None if the field is not given."""
        value = self.value(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.wrong(name, "an object")
            return None
        return ConfigFields(value, f"{self._place}{name}.", self.problems, defaults)
