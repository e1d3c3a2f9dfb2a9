"""Built wheels are enough in empty environments outside the checkout; what is missing is said in a line.

A Python that this machine lacks is skipped with a warning, which pytest shows at the end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import try_pythons
import wheels
from typer.main import get_group

from inference_blueprints import __version__
from inference_blueprints.cli.main import command_line
from inference_local.environments.dynamo import DYNAMO

#: Installations and dozens of commands, on a machine that may be busy.
pytestmark = pytest.mark.timeout(1200)

#: Neither node nor cdk is on this PATH.
BARE_PATH = "/usr/bin:/bin"
#: Top folders of each wheel, besides its metadata.
CONTENT = {
    "inference-contracts": {"inference_contracts"},
    "inference-catalog": {"inference_catalog"},
    "inference-runtime": {"inference_runtime", "inference_decisions"},
    "inference-constructs": {"inference_constructs"},
    "inference-blueprints": {"inference_blueprints"},
    "inference-local": {"inference_local"},
}
INSTALL_LOCAL = "install it: pip install inference-local"
#: The ends: what works with both works with what lies between.
ENDS = (wheels.PYTHONS[0], wheels.PYTHONS[-1])
#: What nobody should see: a traceback, or the line that the command line prints instead of one.
FAULTS = ("Traceback", "unexpected error")
#: Unlike ones: Kubernetes and ECS.
SYNTHESISED = ("quickstart-g6e", "ecs-g6e")
PREPARE = "install it with: blueprints local prepare"
#: Values of required arguments and options; others get a word.
WORDS = {
    **dict.fromkeys(("name_or_path", "names_or_paths", "blueprint"), "quickstart-g6e"),
    **dict.fromkeys(("start", "end"), "2026-11-01"),
    "file": "mine.yaml",
    "url": "http://127.0.0.1:9",
}


class User:
    """Somebody with an empty home folder, who runs commands of an environment."""

    def __init__(self, python: Path, home: Path) -> None:
        self.python = python
        self._program = python.with_name("blueprints")
        self.home = home
        home.mkdir(exist_ok=True)
        away = ("AWS_", "BLUEPRINT", "PYTHON", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(away)}
        cache = {"XDG_CACHE_HOME": str(home / "cache"), "AWS_EC2_METADATA_DISABLED": "true"}
        self.environment = {**kept, "PATH": BARE_PATH, "HOME": str(home), **cache}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self._program), *words],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def does(self, *words: str) -> str:
        ran = self.run(*words)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def files(folder: Path) -> dict[str, Path]:
    return wheels.build(folder)


@pytest.fixture(scope="module")
def digests() -> dict[str, dict[str, str]]:
    """The templates of each blueprint, as the first Python wrote them."""
    return {}


def interpreter(version: str) -> Path:
    """Return a Python, or skip what needs it with a warning."""
    try:
        return wheels.find_python(version)
    except wheels.WheelError as error:
        warnings.warn(str(error), stacklevel=1)
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=wheels.PYTHONS)
def library_user(
    request: pytest.FixtureRequest,
    files: dict[str, Path],
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> User:
    place, python = tmp_path_factory.mktemp("library"), interpreter(request.param)
    found = wheels.environment(place / "venv", folder, "inference-blueprints", python=python)
    return User(found, place / "home")


@pytest.fixture(scope="module", params=ENDS)
def laptop_user(
    request: pytest.FixtureRequest,
    files: dict[str, Path],
    folder: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> User:
    place, python = tmp_path_factory.mktemp("laptop"), interpreter(request.param)
    found = wheels.environment(place / "venv", folder, "inference-local", python=python)
    return User(found, place / "home")


@pytest.mark.parametrize("name", CONTENT)
def test_a_wheel_holds_its_own_packages_once_and_no_tests(files: dict[str, Path], name: str) -> None:
    with zipfile.ZipFile(files[name]) as archive:
        names = archive.namelist()
    assert len(names) == len(set(names))
    tops = {each.split("/")[0] for each in names}
    metadata = f"{name.replace('-', '_')}-{__version__}.dist-info"
    assert tops == {*CONTENT[name], metadata}
    parts = [set(Path(each).parts) for each in names]
    assert [each for each in parts if each & {"tests", "conftest.py", "pytest.ini"}] == []
    assert [each for each in names if Path(each).name.startswith("test_")] == []


def test_only_the_wheel_of_the_laptop_knows_the_laptop(files: dict[str, Path]) -> None:
    """A module of another wheel that imports it would be missing where it is not installed."""
    for name, file in files.items():
        with zipfile.ZipFile(file) as archive:
            knowing = [
                each
                for each in archive.namelist()
                if each.endswith(".py") and b"inference_local" in archive.read(each)
            ]
        assert name == "inference-local" or knowing == []


def test_a_user_validates_plans_and_synthesises_a_file_of_their_own(library_user: User) -> None:
    library_user.does("init", "quickstart-g6e", "mine.yaml", "--name", "mine")
    library_user.does("validate", "mine.yaml")
    assert "qwen3-8b" in library_user.does("plan", "mine.yaml")
    library_user.does("synth", "mine.yaml", "--directory", "out")
    templates = (library_user.home / "out").glob("*.template.json")
    stacks = {path.name.removesuffix(".template.json") for path in templates}
    assert {"mine-Data", "mine-Network", "mine-Cluster", "mine-Platform", "mine-Capacity"} <= stacks
    assert "mine-Model-qwen3-8b" in stacks


@pytest.mark.parametrize("blueprint", SYNTHESISED)
def test_each_python_writes_the_same_templates(
    library_user: User, digests: dict[str, dict[str, str]], blueprint: str
) -> None:
    """Red if a template, or the digest of a function's code, depends on the version of Python."""
    found = try_pythons.synthesise(
        library_user.python, blueprint, library_user.home, library_user.environment
    )
    assert found
    assert try_pythons.differences(digests.setdefault(blueprint, found), found) == []


@pytest.mark.parametrize(
    "words",
    [
        ("local",),
        ("local", "up", "quickstart-g6e"),
        ("verify", "quickstart-g6e", "--local"),
        ("tune", "quickstart-g6e"),
        ("benchmark", "http://127.0.0.1:9", "--blueprint", "quickstart-g6e"),
    ],
    ids=lambda words: words[0] + words[-1],
)
def test_the_library_alone_says_what_to_install(library_user: User, words: tuple[str, ...]) -> None:
    ran = library_user.run(*words)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.rstrip("\n").endswith(INSTALL_LOCAL), ran.stderr


def calls(command: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield a call of each command, with a value for each argument and option that is required."""
    for name, each in getattr(command, "commands", {}).items():
        yield from calls(each, (*before, name))
    if hasattr(command, "commands"):
        return
    words: list[str] = []
    for parameter in command.params:
        if parameter.required:
            value = WORDS.get(parameter.name or "", "1")
            words += [value] if parameter.param_type_name == "argument" else [parameter.opts[0], value]
    yield (*before, *words)


def test_no_command_of_the_library_alone_ends_in_a_traceback(library_user: User) -> None:
    """With no laptop, no account, no Dynamo and an empty home, each command answers or says what it lacks."""
    found = [each for each in calls(get_group(command_line())) if each[0] != "local"]
    assert ("validate", "quickstart-g6e") in found
    answers = {each: library_user.run(*each) for each in found}
    wrong = {
        each: ran.stderr
        for each, ran in answers.items()
        if any(fault in ran.stderr for fault in FAULTS) or ran.returncode not in (0, 1, 2)
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "words",
    [
        ("./[local]", "--constraints", "requirements.lock"),
        ("inference-blueprints", "--find-links", "{wheels}", "--constraints", "requirements.lock"),
    ],
    ids=["checkout", "wheels"],
)
def test_one_command_installs_a_checkout_or_a_release(
    files: dict[str, Path], folder: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """Red if a part of the workspace is not found, or is an old one from uv's cache."""
    places = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    command = [word.format(wheels=folder) for word in words]
    uv = (sys.executable, "-m", "uv", "tool", "install", "--quiet", "--python", sys.executable)
    wheels.run(*uv, *command, directory=wheels.ROOT, variables={**os.environ, **places})
    user = User(tmp_path / "bin/python", tmp_path / "home")
    assert "quickstart-g6e" in user.does("list")
    answer = user.run("local", "--help")
    assert "prepare" in answer.stdout or "uv tool install --force './[local]'" in answer.stderr
    (packages,) = tmp_path.glob("tools/*/lib/python*/site-packages")
    for part, place in (("inference_contracts", "contracts"), ("inference_decisions", "runtime")):
        for path in (wheels.ROOT / place / part).glob("**/*.py"):
            relative = path.relative_to(wheels.ROOT / place)
            assert (packages / relative).read_bytes() == path.read_bytes(), relative


def test_dynamo_is_prepared_once_and_then_used(laptop_user: User) -> None:
    for words in (("local", "up", "quickstart-g6e"), ("tune", "quickstart-g6e")):
        before = laptop_user.run(*words)
        assert before.returncode == 1
        assert PREPARE in before.stderr
    first, second = laptop_user.does("local", "prepare"), laptop_user.does("local", "prepare")
    assert first.startswith(f"installing {DYNAMO.title}: ")
    assert len(second.splitlines()) == 1, "the second time, nothing is installed"
    (python,) = laptop_user.home.glob("cache/inference-blueprints/dynamo/*/env/bin/python")
    assert second.rstrip("\n").endswith(str(python))
    used = sum(path.lstat().st_blocks * 512 for path in python.parents[2].rglob("*") if path.is_file())
    assert used <= DYNAMO.installed_bytes <= 1.25 * used, "the announced size"
    report = laptop_user.does("local", "up", "quickstart-g6e", "--no-keep", "--seconds", "5")
    assert "0 failures" in report


LINUX_ARM, MACOS = "aarch64-manylinux_2_31", "aarch64-apple-darwin"


@pytest.mark.parametrize("python", ENDS)
@pytest.mark.parametrize("name", ["inference-blueprints", "inference-local"])
def test_the_lowest_and_the_highest_versions_can_be_installed(
    files: dict[str, Path], folder: Path, name: str, python: str
) -> None:
    """Red if a range has no versions that fit together. `make release` runs both."""
    assert name in wheels.resolved(folder, *wheels.required(name), python=python, resolution="lowest-direct")
    assert name in wheels.resolved(folder, name, python=python)


def test_the_library_can_be_installed_beside_the_newest(files: dict[str, Path], folder: Path) -> None:
    """Red if a range of the library ends below a release that somebody else's program needs."""
    neighbours = ("aws-cdk-lib", "boto3", "pydantic")
    newest = wheels.resolved(folder, *neighbours, python="3.12")
    beside = wheels.resolved(folder, "inference-blueprints", *neighbours, python="3.12")
    assert {each: beside[each] for each in neighbours} == {each: newest[each] for each in neighbours}


@pytest.mark.parametrize("python", ENDS)
@pytest.mark.parametrize(
    ("name", "platform"),
    [
        ("inference-blueprints", LINUX_ARM),
        ("inference-local", LINUX_ARM),
        ("inference-blueprints", MACOS),
    ],
)
def test_other_machines_have_wheels_of_the_locked_versions(
    files: dict[str, Path], folder: Path, name: str, platform: str, python: str
) -> None:
    """Resolved, not run. Red if a locked version has no wheel for a machine that docs/install.md names."""
    found = wheels.resolved(folder, name, python=python, platform=platform, constraints=wheels.LOCK)
    assert name in found
