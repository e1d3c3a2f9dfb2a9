"""The cache of built things: made once, whole or not at all, and checked at use."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference_blueprints.folder_lock import folder_lock
from inference_contracts.errors import UserError
from inference_local.control_plane import artefacts, build
from inference_local.control_plane.artefacts import ModuleFiles, Program
from inference_local.serving.llama_cpp import server_build
from tests.plugins.programs import real_go

FILES = ModuleFiles("some-files", "example.org/module", "v1.2.3", ("config/*.yaml",))


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is reported, with a module on this machine and an empty cache."""
    (tmp_path / "module" / "config").mkdir(parents=True)
    (tmp_path / "module" / "config" / "a.yaml").write_text("a")
    (tmp_path / "module" / "config" / "ignored.txt").write_text("b")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "_download", lambda *_: tmp_path / "module")
    return []


@pytest.fixture
def go_caches() -> Path:
    return build._go_caches()


def test_files_are_copied_once(lines: list[str]) -> None:
    first = build.module_files(FILES, lines.append)
    again = build.module_files(FILES, lines.append)

    assert first == again
    names = sorted(str(path.relative_to(first)) for path in first.rglob("*") if path.is_file())
    assert names == ["SHA256SUMS", "config/a.yaml"]
    assert lines[-1] == "some-files v1.2.3: cached"


def test_a_changed_file_is_refused(lines: list[str]) -> None:
    folder = build.module_files(FILES, lines.append)
    (folder / "config" / "a.yaml").write_text("other")

    with pytest.raises(UserError, match="do not match the checksums"):
        build.module_files(FILES, lines.append)


def test_an_added_file_is_refused(lines: list[str]) -> None:
    folder = build.module_files(FILES, lines.append)
    (folder / "more").write_text("more")

    with pytest.raises(UserError, match="do not match the checksums"):
        build.module_files(FILES, lines.append)


def test_what_matches_nothing_leaves_nothing(lines: list[str], tmp_path: Path) -> None:
    files = ModuleFiles("none", "example.org/module", "v1.2.3", ("absent/*",))

    with pytest.raises(UserError, match=r"example\.org/module v1\.2\.3 contains no absent/\*"):
        build.module_files(files, lines.append)

    assert list((tmp_path / "cache").rglob("*none*")) == []


def test_another_pattern_is_another_folder(lines: list[str]) -> None:
    other = ModuleFiles("some-files", "example.org/module", "v1.2.3", ("config/*",))

    assert build.module_files(FILES, lines.append) != build.module_files(other, lines.append)


@pytest.mark.parametrize("setting", ["_GO_SETTINGS", "_LINKER_FLAGS"])
def test_another_setting_is_another_folder(
    lines: list[str], monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """Otherwise a program that was built with the old settings would be used for ever."""
    first = build.module_files(FILES, lines.append)
    monkeypatch.setattr(build, setting, ())
    assert build.module_files(FILES, lines.append) != first


@pytest.mark.clock
def test_a_failing_go_speaks_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_go", real_go)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("GOPROXY", "off")

    with pytest.raises(
        UserError, match=r"go mod download -json example\.org/module@v1\.2\.3 failed:(.|\n)*GOPROXY=off"
    ):
        build.module_files(FILES, print)


def test_a_test_that_needs_a_program_names_the_command_that_builds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns red when a test compiles."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    with pytest.raises(UserError, match="not in the cache; run: make programs"):
        build.program(artefacts.ETCD, print)
    with pytest.raises(UserError, match="run: make programs LLAMA=1"):
        server_build.llama_quantize(print)


def test_go_s_caches_stay_while_another_process_builds(lines: list[str], go_caches: Path) -> None:
    """Turns red when the end of one build removes the files that another one reads."""
    (go_caches / "build").mkdir(parents=True)

    with folder_lock(go_caches, shared=True):
        build.remove_build_cache()
        assert (go_caches / "build").is_dir()
    build.remove_build_cache()

    assert list(go_caches.parent.iterdir()) == []


def test_a_build_holds_go_s_caches(
    lines: list[str], go_caches: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Turns red when a build lets others remove Go's caches, or when its own removal waits for itself."""

    def download(*_: object) -> Path:
        build.remove_build_cache()
        assert go_caches.is_dir()
        return tmp_path / "module"

    monkeypatch.setattr(build, "_download", download)
    build.module_files(FILES, lines.append)
    build.remove_build_cache()
    assert not go_caches.exists()


def test_what_a_killed_removal_left_is_removed(lines: list[str], go_caches: Path) -> None:
    remains = go_caches.parent / ".removed-go-1" / "modules"
    remains.mkdir(parents=True)

    build.remove_build_cache()

    assert list(go_caches.parent.iterdir()) == []


def test_words_of_a_main_package_are_changed_in_a_copy(tmp_path: Path) -> None:
    module, copied = tmp_path / "module", tmp_path / "copied"
    (module / "cmd").mkdir(parents=True)
    (module / "cmd" / "main.go").write_text('const folder = "/etc/some"')
    words = {"main.go": ('"/etc/some"', '"some"')}
    program = Program("some", "example.org/a", "v1.0.0", "example.org/a/cmd", rewrites=words)

    build._rewrite(program, module, copied)

    assert (copied / "main.go").read_text() == 'const folder = "some"'
    assert (module / "cmd" / "main.go").read_text() == 'const folder = "/etc/some"'


def test_words_that_are_gone_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "module" / "cmd").mkdir(parents=True)
    (tmp_path / "module" / "cmd" / "main.go").touch()
    words = {"main.go": ('"/etc/some"', '"some"')}
    program = Program("some", "example.org/a", "v1.0.0", "example.org/a/cmd", rewrites=words)

    with pytest.raises(UserError, match=r'main\.go does not contain "/etc/some"'):
        build._rewrite(program, tmp_path / "module", tmp_path / "copied")


def test_neighbours_of_kubernetes_are_replaced_by_their_own_version() -> None:
    upstream = "replace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tother => example.org/fork v1.0.0\n)\n"

    text = build._module_file(artefacts.KUBERNETES, upstream)

    assert f"require k8s.io/kubernetes {artefacts.KUBERNETES_VERSION}" in text
    staging = artefacts.KUBERNETES_VERSION.replace("v1", "v0", 1)
    assert [line for line in text.splitlines() if line.startswith("replace")] == [
        f"replace k8s.io/api => k8s.io/api {staging}"
    ]


def test_a_program_s_own_replacement_is_written() -> None:
    program = Program(
        "some", "example.org/a", "v1.0.0", "example.org/a", replaces={"example.org/b": "v2.0.0"}
    )

    assert "replace example.org/b => example.org/b v2.0.0" in build._module_file(program, "")
