"""Names of services and models in the file that tasks read."""

from __future__ import annotations

from pathlib import Path

from inference_local.emulator.ecs.vpc import CloudMapNames


def test_names_follow_the_tasks_in_one_file(tmp_path: Path) -> None:
    file = tmp_path / "names"
    file.write_text("")
    names = CloudMapNames(file, lambda arn: f"{arn}.internal")
    inode = file.stat().st_ino
    names.register("store", "task-1", "10.64.0.1")
    names.register("store", "task-2", "10.64.0.2")
    names.deregister("store", "task-1")
    names.deregister("store", "task-1")
    assert file.read_text() == "127.0.0.1 localhost\n10.64.0.2 store.internal\n"
    assert file.stat().st_ino == inode


def test_names_of_models_are_read_again_for_each_task(tmp_path: Path) -> None:
    file, models = tmp_path / "names", ["10.64.255.254 chat.models"]
    file.write_text("")
    names = CloudMapNames(file, lambda arn: f"{arn}.internal", lambda: models)
    names.register("store", "task-1", "10.64.0.1")
    models.append("10.64.255.254 code.models")
    names.refresh()
    assert file.read_text().splitlines()[1:] == [*models, "10.64.0.1 store.internal"]
