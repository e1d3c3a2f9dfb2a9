"""Support levels of what a blueprint can choose. Proofs decide them, by the rule of `Feature.level`."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from inference_contracts.records import dataclass

# Ways of serving that upstream projects do not call proven.


@dataclass(frozen=True, slots=True)
class ExperimentalWay:
    """A way of serving that may fail, although every part of it is supported."""

    name: str
    """The catalogue's name."""
    what: str
    """What is experimental, as the subject of a sentence."""
    reason: str
    """What is known to fail, or is not known to work."""
    remedy: str
    """What to use instead."""
    source: str
    """URL of the issue or release notes."""
    date: str
    """Date on which the source was read."""


SupportLevel = Literal["core", "supported", "experimental"]
#: From the highest to the lowest.
LEVELS: Final[tuple[SupportLevel, ...]] = get_args(SupportLevel)
#: How a test runs a feature, from the strongest proof to the weakest.
HOW: Final = MappingProxyType(
    {
        "hardware": "it has run in an AWS account, on the accelerators that it uses",
        "real": "a program that does its work on AWS runs in the tests, without an account or accelerators",
        "emulated": "another program answers the same API and keeps the same state",
        "simulated": "times and states are modelled from measurements or documents",
        "scripted": "a program of the tests answers with prepared words or images",
        "rendered": "templates, manifests and arguments are checked, and nothing runs",
    }
)
#: Stands for instance types without accelerators.
PROCESSORS: Final = "processors"
#: Stands for an entry of a model beside the blueprint.
OWN_ENTRY: Final = "ownEntry"
#: The proofs in which the feature does its work.
_RUNNING: Final = ("hardware", "real", "emulated", "simulated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What tests prove about a feature."""

    how: str
    """A key of `HOW`."""
    shows: str
    """What runs, or is checked."""
    tests: tuple[str, ...]
    """Files of tests, relative to the repository."""
    faults: tuple[str, ...] = ()
    """The files that break what runs on purpose."""
    before_release: bool = False
    """Whether these tests run before a release only."""

    @property
    def files(self) -> tuple[str, ...]:
        """All files of its tests."""
        return (*self.tests, *self.faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """Something that a blueprint can choose."""

    name: str
    """The name that readers see."""
    keys: tuple[str, ...]
    """Keys of `spec` that use it, without the indices of lists, such as ``models.engine.vllm``. A key with a
    value, such as ``pools.efa=true``, counts only with that value. The value of ``pools.instanceTypes`` is
    the resource of the accelerators, or `PROCESSORS`, and that of ``models.weights`` is `OWN_ENTRY`."""
    proofs: tuple[Proof, ...] = ()
    """What tests prove."""

    @property
    def level(self) -> SupportLevel:
        """The level. Nothing but the proofs decides it.

        - ``core``: in every run of continuous integration the real program runs, and a test breaks
          something on purpose.
        - ``supported``: in every run of continuous integration the feature does its work, be it emulated or
          simulated.
        - ``experimental``: everything else.
        """
        every_run = [proof for proof in self.proofs if not proof.before_release]
        if any(proof.how in {"hardware", "real"} and proof.faults for proof in every_run):
            return "core"
        return "supported" if any(proof.how in _RUNNING for proof in every_run) else "experimental"

    @property
    def on_hardware(self) -> bool:
        """Whether it has run in an AWS account, on the accelerators that it uses."""
        return any(proof.how == "hardware" for proof in self.proofs)

    @property
    def proven(self) -> str:
        """How it was proven, in a few words: in every run, and before a release."""
        found = {(proof.before_release, proof.how) for proof in self.proofs}
        parts = [
            f"{how} before a release" if before_release else how
            for before_release in (False, True)
            for how in HOW
            if (before_release, how) in found
        ]
        return ", ".join(parts) or "nothing"


#: Stands where the library offers to deploy what never ran in an AWS account: pages and `blueprints list`.
NEVER_ON_HARDWARE: Final = (
    "None of it has run on hardware: in an AWS account, on the accelerators that it uses."
)


@dataclass(frozen=True, slots=True)
class Support:
    """The features that a blueprint uses."""

    features: tuple[Feature, ...]
    """In the order of the catalogue, and then those without an entry."""

    @property
    def level(self) -> SupportLevel:
        """The lowest level of the features."""
        return max((each.level for each in self.features), key=LEVELS.index, default="core")

    def names(self, level: SupportLevel) -> tuple[str, ...]:
        """Return the names of the features with this level."""
        return tuple(each.name for each in self.features if each.level == level)

    @property
    def on_hardware(self) -> bool:
        """Whether any of them has run in an AWS account, on the accelerators that it uses."""
        return any(each.on_hardware for each in self.features)

    @property
    def line(self) -> str:
        """The level in one line, with the experimental features."""
        experimental = ", ".join(self.names("experimental"))
        return (
            f"Support: {self.level}{f' ({experimental})' if experimental else ''}"
            f"{'' if self.on_hardware else '; never run on hardware'}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the level, and each feature with its own, as JSON values."""
        features = [
            {
                "name": each.name,
                "level": each.level,
                "proven": each.proven,
                "onHardware": each.on_hardware,
            }
            for each in self.features
        ]
        return {"level": self.level, "features": features}


def unknown_feature(key: str) -> Feature:
    """Return a feature without an entry, which is experimental.

    Parameters
    ----------
    key
        The key of `spec` that uses it.
    """
    return Feature(name=key, keys=(key,))
