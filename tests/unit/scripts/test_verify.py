"""`make verify` on a small checkout: what it finds, and that it leaves the checkout alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import verify

CURRENT = {"docs/page.md": "price: 4\n", "docs/old.svg": "<svg/>\n"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    files = {**CURRENT, ".gitignore": "build/\n", "build/output": "big", "code.py": "PRICE = 4\n"}
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    return folder


def contents(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts]
    return {str(path.relative_to(folder)): path.read_text() for path in files}


def writing(**texts: str | None) -> Callable[[Path], None]:
    """Return a generator that writes pages of `docs`, and removes those without a text."""

    def generate(folder: Path) -> None:
        for stem, text in texts.items():
            path = folder / "docs" / f"{stem}.md"
            path.unlink() if text is None else path.write_text(text)

    return generate


def test_a_tree_whose_files_are_current_passes(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify.main(tree, writing(page="price: 4\n"))
    assert capsys.readouterr().out.startswith("all generated files are current")


def test_a_stale_file_is_shown_with_its_difference(tree: Path) -> None:
    """If the tree itself were written, the difference would be gone before anyone reads it."""
    before = contents(tree)
    with pytest.raises(SystemExit) as stopped:
        verify.main(tree, writing(page="price: 5\n"))
    assert str(stopped.value).splitlines() == [
        "changed: docs/page.md",
        "  @@ -1 +1 @@",
        "  -price: 4",
        "  +price: 5",
        "run: make generate, read the difference, commit it",
    ]
    assert contents(tree) == before


def test_files_that_nothing_writes_any_more_or_not_yet_are_found(tree: Path) -> None:
    found = verify.verify(tree, writing(page=None, new="new\n"))
    assert [line for line in found.splitlines() if not line.startswith(" ")] == [
        "missing: docs/new.md",
        "left over: docs/page.md",
    ]


def test_a_long_difference_is_cut_and_says_so(tree: Path) -> None:
    found = verify.verify(tree, writing(page="line\n" * 50)).splitlines()
    assert len(found) == 12
    assert found[-1] == "  ... and 42 more lines"


def test_a_generator_that_fails_fails_the_check(tree: Path) -> None:
    def generate(folder: Path) -> None:
        raise SystemExit("a generator failed, see above")

    with pytest.raises(SystemExit, match="a generator failed"):
        verify.main(tree, generate)


def test_generators_see_changes_that_are_not_committed_but_nothing_that_git_ignores(tree: Path) -> None:
    (tree / "code.py").write_text("PRICE = 5\n")
    (tree / ".venv").mkdir()
    seen = {}

    def generate(folder: Path) -> None:
        seen.update(contents(folder))
        assert (folder / ".venv").resolve() == (tree / ".venv").resolve()

    assert verify.verify(tree, generate) == ""
    assert seen["code.py"] == "PRICE = 5\n"
    assert "build/output" not in seen


def test_settings_of_a_hook_do_not_lead_git_to_another_checkout(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """git calls hooks with variables that name the checkout and its index."""
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "none"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    assert "changed: docs/page.md" in verify.verify(tree, writing(page="price: 5\n"))
