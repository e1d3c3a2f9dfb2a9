"""What differs between two releases of an engine, from made-up releases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import inference_catalog as catalog
from inference_blueprints.report.engine_differences import compared, recorded_releases
from inference_catalog import Engine, Flag
from inference_contracts.errors import BlueprintError


def release(flag: Flag, *classes: str) -> Engine:
    """Return a release of vLLM with one flag."""
    flags = {"--mode": flag}
    return replace(catalog.engine("vllm"), flags=flags, server_flags={}, model_classes=classes)


def flag(*choices: str, takes_value: bool = True, negatable: bool = False) -> Flag:
    return replace(
        catalog.engine("vllm").flags["--seed"],
        takes_value=takes_value,
        negatable=negatable,
        choices=choices,
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (flag(), flag(), None),
        (flag(takes_value=False), flag(), "takes a value"),
        (flag(), flag(takes_value=False), "takes no value"),
        (flag(negatable=True), flag(), "has no --no- form"),
        (flag("a", "b"), flag("b", "c"), "new values c; without the values a"),
        (flag("a"), flag(), None),
    ],
)
def test_how_a_flag_differs(old: Flag, new: Flag, expected: str | None) -> None:
    assert compared(release(old), release(new)).changed.get("--mode") == expected


def test_classes_recorded_with_a_release_are_its_classes() -> None:
    """They come before the table of releases: a file beside the blueprint may be of one's own build."""
    found = compared(release(flag(), "A", "B"), release(flag(), "B", "C"))
    assert (found.added_classes, found.removed_classes) == (("C",), ("A",))


def test_a_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "vllm-7.json").write_text("{}", encoding="utf-8")
    with pytest.raises(BlueprintError, match="allowed are sglang, vllm"):
        recorded_releases("vllm", tmp_path)
