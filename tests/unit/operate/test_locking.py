"""The command lock: it completes, never changes, and leaves shipped blueprints alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.versions import complete_lock, keep_lock, own_file
from inference_blueprints.spec.lock.lock import Lock, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_blueprints.spec.source import shipped
from inference_contracts.errors import UserError
from tests.unit.command_run import Ran, blueprints


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(shipped()["quickstart-g6e"].read_text())
    return path


def test_a_lock_is_completed_and_what_it_holds_stays(file: Path) -> None:
    lock_path(file).write_text(lock_text(Lock(release="0.0.1", bottlerocket="v1.50.0")))
    changes = keep_lock(load_blueprint(str(file)), file)
    assert "Bottlerocket" not in {change.part for change in changes}
    loaded = load_blueprint(str(file))
    assert loaded.lock is not None
    assert loaded.lock.bottlerocket == "v1.50.0"
    assert loaded.lock.kubernetes == "1.35"
    before = lock_path(file).read_bytes()
    assert keep_lock(loaded, file) == []
    assert lock_path(file).read_bytes() == before


def test_another_release_alone_rewrites_nothing(file: Path) -> None:
    lock = replace(complete_lock(load_blueprint(str(file))), release="0.0.1")
    lock_path(file).write_text(lock_text(lock))
    assert keep_lock(load_blueprint(str(file)), file) == []
    assert load_blueprint(str(file)).lock == lock


@pytest.mark.parametrize("name", ["quickstart-g6e", str(shipped()["quickstart-g6e"].resolve())])
def test_shipped_blueprints_have_no_lock(name: str) -> None:
    with pytest.raises(UserError, match=r"blueprints init quickstart-g6e my-platform\.yaml"):
        own_file(name)


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(shipped()["quickstart-g6e"].read_text())
    loaded = load_blueprint(str(file))
    with pytest.raises(UserError, match=r"mine.lock.yaml: cannot be written: No such file"):
        keep_lock(loaded, tmp_path / "gone" / "mine.yaml")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.yaml"]


def test_check_says_what_is_missing_and_writes_nothing(file: Path) -> None:
    def lock(*words: str) -> Ran:
        return blueprints("lock", str(file), *words, folder=file.parent)

    missing = lock("--check")
    assert (missing.code, lock_path(file).exists()) == (1, False)
    assert "Bottlerocket: v" in missing.out
    written = lock()
    assert (written.code, written.out.splitlines()[-1]) == (0, f"wrote {lock_path(file)}")
    assert lock("--check").code == 0
