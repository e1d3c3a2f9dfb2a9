"""Which generators `make generate` runs, in which order, and what it does if one fails."""

from __future__ import annotations

import os
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import generate
import pytest
from generate import GeneratorRun
from generated_files import fill_section, rewrite, write_all

PLACE = "# Page\n\n<!-- sizes: by a script -->\n{}<!-- end of sizes -->\n\nEnd\n"


@pytest.fixture
def one_at_a_time() -> Executor:
    return ThreadPoolExecutor(1)


def test_a_new_generator_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("write_b", "write_a", "record_c"):
        (tmp_path / "scripts" / f"{name}.py").touch()
    assert generate.generators(tmp_path) == ["write_a", "write_b"]


def test_every_generator_of_this_tree_can_be_run() -> None:
    names = set(generate.generators())
    assert names >= {*generate.AFTER, *(each for before in generate.AFTER.values() for each in before)}
    scripts = generate.TREE / "scripts"
    without = [
        name for name in names if "\ndef main() -> None:\n" not in (scripts / f"{name}.py").read_text()
    ]
    assert without == []


def test_a_failure_is_reported_and_what_comes_after_it_does_not_begin(
    one_at_a_time: Executor, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "AFTER", {"a": ("c",), "d": ("b",)})
    ran = []

    def run(name: str) -> GeneratorRun:
        ran.append(name)
        return GeneratorRun(name, 2.0, "broken" if name == "b" else "")

    assert generate.generate(["a", "b", "c", "d"], one_at_a_time, run) == [GeneratorRun("b", 2.0, "broken")]
    assert ran == ["b", "c", "a"]
    assert sorted(capsys.readouterr().out.splitlines()) == ["  a: 2.0 s", "  b: FAILED", "  c: 2.0 s"]


def test_what_a_generator_prints_is_shown_if_it_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    printing = "import os\ndef main():\n    os.write(1, b'printed')\n"
    (tmp_path / "write_bad.py").write_text(f"{printing}    raise ValueError('no place')\n")
    (tmp_path / "write_ended.py").write_text(f"{printing}    raise SystemExit('page is missing')\n")
    (tmp_path / "write_good.py").write_text(printing)
    monkeypatch.syspath_prepend(tmp_path)
    assert generate.run("write_good").problem == ""
    assert generate.run("write_ended").problem == "page is missing"
    problem = generate.run("write_bad").problem
    assert problem.startswith("printedTraceback")
    assert problem.endswith("ValueError: no place\n")
    os.write(1, b"after")
    assert capfd.readouterr().out == "after"


def test_a_place_is_filled_and_the_rest_of_the_page_stays() -> None:
    assert fill_section(PLACE.format("old\n"), "sizes", "new") == PLACE.format("\nnew\n\n")


@pytest.mark.parametrize("page", ["# Page\n", PLACE.format("") * 2], ids=["none", "two"])
def test_a_page_without_exactly_one_place_is_refused(page: str, tmp_path: Path) -> None:
    """A page whose markers are gone would stay as it is for ever, without a word."""
    file = tmp_path / "page.md"
    file.write_text(page)
    with pytest.raises(ValueError, match=r"page\.md: got [02] places, one is needed: <!-- sizes -->"):
        rewrite(file, lambda text: fill_section(text, "sizes", "new"))
    assert file.read_text() == page


def test_a_shorter_page_leaves_no_end_of_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text("a long text")
    rewrite(file, lambda _: "short")
    assert file.read_text() == "short"


def test_files_that_are_not_written_any_more_are_removed(tmp_path: Path) -> None:
    for name in ("kept.svg", "gone.svg", "page.md"):
        (tmp_path / name).write_text("old")
    write_all({tmp_path / "kept.svg": "new"}, tmp_path.glob("*.svg"))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "kept.svg": "new",
        "page.md": "old",
    }
