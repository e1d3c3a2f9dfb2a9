"""A snapshot's id comes into the file, and nothing else changes."""

from __future__ import annotations

import pytest

from inference_blueprints.errors import UserError
from inference_blueprints.spec.amendment import with_snapshot

NEW = "snap-0fedcba9876543210"


def document(*pools: str) -> str:
    return "\n".join(["# the shop", "spec:", "  pools:   # all of them", *pools, "  models: []  # none", ""])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "  - {name: a, imageAcceleration: {ebsSnapshot: {}}}  # soon",
            f"  - {{name: a, imageAcceleration: {{ebsSnapshot: {{id: {NEW}}}}}}}  # soon",
            id="none yet, on one line",
        ),
        pytest.param(
            "  - name: a\n    imageAcceleration:\n      ebsSnapshot: {  }   # soon",
            f"  - name: a\n    imageAcceleration:\n      ebsSnapshot: {{id: {NEW}}}   # soon",
            id="none yet, in a block",
        ),
        pytest.param(
            "  - name: a\n    imageAcceleration:\n      ebsSnapshot:\n        id: snap-0a1b2c3d   # May",
            f"  - name: a\n    imageAcceleration:\n      ebsSnapshot:\n        id: {NEW}   # May",
            id="an older one, in a block",
        ),
        pytest.param(
            "  - {imageAcceleration: {ebsSnapshot: {id: 'snap-0a1b2c3d'}}, name: \"a\"}",
            f'  - {{imageAcceleration: {{ebsSnapshot: {{id: {NEW}}}}}, name: "a"}}',
            id="an older one, in quotes",
        ),
    ],
)
def test_only_the_id_changes(before: str, after: str) -> None:
    other = "  - {name: b, imageAcceleration: {ebsSnapshot: {id: snap-0a1b2c3d}}}  # of b: é"
    assert with_snapshot(document(other, before), "a.yaml", "a", NEW) == document(other, after)
    assert with_snapshot(document(before, other), "a.yaml", "a", NEW) == document(after, other)


def test_line_ends_stay() -> None:
    text = document("  - {name: a, imageAcceleration: {ebsSnapshot: {}}}").replace("\n", "\r\n")
    changed = with_snapshot(text, "a.yaml", "a", NEW)
    assert changed.replace(f"{{id: {NEW}}}", "{}") == text


def test_what_stands_for_another_pool_too_is_left_to_the_user() -> None:
    first = "  - {name: b, imageAcceleration: &images {ebsSnapshot: {}}}"
    second = "  - {name: a, imageAcceleration: *images}"
    with pytest.raises(UserError, match=rf"a\.yaml: .* write `id: {NEW}` to the ebsSnapshot of pool 'a' by"):
        with_snapshot(document(first, second), "a.yaml", "a", NEW)
