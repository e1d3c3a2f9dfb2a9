"""One value of a file changes, and nothing else."""

from __future__ import annotations

import pytest

from inference_blueprints.spec import composer
from inference_blueprints.spec.text_edit import with_kubernetes_version, with_snapshot
from inference_contracts.errors import UserError

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
            f"  - {{imageAcceleration: {{ebsSnapshot: {{id: '{NEW}'}}}}, name: \"a\"}}",
            id="an older one, in quotes",
        ),
    ],
)
def test_only_the_id_changes(before: str, after: str) -> None:
    other = "  - {name: b, imageAcceleration: {ebsSnapshot: {id: snap-0a1b2c3d}}}  # of b: é"
    assert with_snapshot(document(other, before), "a.yaml", "a", NEW) == document(other, after)
    assert with_snapshot(document(before, other), "a.yaml", "a", NEW) == document(after, other)


@pytest.mark.parametrize("quote", ["'", '"'])
def test_the_kubernetes_version_changes_and_its_quotes_stay(quote: str) -> None:
    text = f"# é\r\nspec:\r\n  cluster: {{eks: {{version: {quote}1.35{quote}}}}}  # till May\r\n"
    changed = with_kubernetes_version(text, composer.parse(text, "a.yaml"), "1.36")
    assert changed == text.replace("1.35", "1.36")


def test_line_ends_stay() -> None:
    text = document("  - {name: a, imageAcceleration: {ebsSnapshot: {}}}").replace("\n", "\r\n")
    changed = with_snapshot(text, "a.yaml", "a", NEW)
    assert changed.replace(f"{{id: {NEW}}}", "{}") == text


def test_what_stands_for_another_pool_too_is_left_to_the_user() -> None:
    first = "  - {name: b, imageAcceleration: &images {ebsSnapshot: {}}}"
    second = "  - {name: a, imageAcceleration: *images}"
    with pytest.raises(
        UserError, match=rf"^a\.yaml:4:43: spec\.pools\[1\]\..*`id: {NEW}` into the ebsSnapshot of pool 'a'"
    ):
        with_snapshot(document(first, second), "a.yaml", "a", NEW)
