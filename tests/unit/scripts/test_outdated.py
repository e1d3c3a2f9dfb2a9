"""`make outdated`: every pin has a row, and a registry that does not answer fails nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

import benchmarks
from benchmarks.harness.recorded_results import Results, discover
from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_catalog.catalogue import shipped
from inference_local.control_plane import artefacts
from tests.unit.stand_in_programs import Call, Printed, StandInPrograms

# As on the path of a script, where its neighbours are modules without a package.
sys.path.append(str(root() / "scripts"))
import advisories
import outdated
import pin_list
import registry_answers
from pin_list import VersionPin
from registry_answers import Release, UnansweredError

TODAY = date(2026, 11, 22)
PACKAGE = VersionPin("Python packages", "boto3", "1.43.106", "python", "boto3")


def row(pin: VersionPin, current: Release | None = None, newest: Release | None = None) -> tuple[str, ...]:
    (table,) = outdated.tables([pin], {pin: (current, newest)}, TODAY)
    return table.rows[0]


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> StandInPrograms:
    return StandInPrograms(monkeypatch)


def test_every_pinned_package_chart_image_and_version_has_a_row() -> None:
    named = {(pin.name, pin.version) for pin in pin_list.pins()}
    charts = yaml.safe_load((root() / "helm_values/charts.yaml").read_text())
    assert {(name, each["version"]) for name, each in charts.items() if "repository" in each} <= named
    locked = set(re.findall(r"^([\w.-]+)==(\S+)", (root() / "requirements.lock").read_text(), re.MULTILINE))
    wanted = {
        "aiohttp",
        "aws-cdk-lib",
        "ministack",
        "numpy",
        "pytest",
        "hatchling",
        "ai-dynamo",
        "aws-lambda-powertools",
    }
    assert {pin for pin in locked if pin[0] in wanted} <= named
    package = json.loads((root() / "package.json").read_text())
    assert {*package["dependencies"].items(), *package["devDependencies"].items()} <= named
    assert {("vllm", shipped().engines["vllm"].engine_version), ("Kubernetes", "1.35")} <= named
    assert {(name, each.version) for name, each in shipped().operating_systems.items()} <= named


def test_every_pin_that_no_tool_updates_has_a_reason_and_every_date_is_one() -> None:
    groups = {"Helm charts", "Images", "Nodes", "Kubernetes on EKS", "EKS add-ons"}
    assert [pin.name for pin in pin_list.pins() if pin.group in groups and not pin.reason] == []
    for pin in pin_list.pins():
        assert pin.released is None or date.fromisoformat(pin.released) <= date.today()


def test_a_reason_belongs_to_a_pin() -> None:
    # A reason that stays after its pin is gone would be read by nobody.
    named = {name for pin in pin_list.pins() for name in (pin.name, pin.address)}
    assert set(tomllib.loads((root() / "pyproject.toml").read_text())["tool"]["pins"]) <= named
    assert set(json.loads((root() / "package.json").read_text())["pins"]) <= named
    assert set(artefacts.REASONS) <= named


def test_a_row_has_age_newest_release_and_a_call_for_a_reason() -> None:
    current, newest = Release("1.43.106", "2026-09-30"), Release("1.44.5", "2026-11-20")
    assert row(PACKAGE, current, newest) == (
        "boto3",
        "1.43.106",
        "1.44.5",
        "no reason is recorded: move the pin, or record one",
        "2026-09-30",
        "53",
    )


def test_a_recorded_reason_is_shown_and_the_newest_release_needs_none() -> None:
    held = VersionPin("Images", "envoy", "distroless-v1.40.0", "go", "envoy", "2026-10-15", "as the tests")
    assert row(held, None, Release("v1.41.0"))[3:] == ("as the tests", "2026-10-15", "38")
    assert row(PACKAGE, None, Release("1.43.106"))[3] == "it is the newest"
    # A candidate that is newer than the newest final release, such as TensorRT-LLM's.
    candidate = VersionPin("Engines", "tensorrtLlm", "1.3.0rc29", "python", "tensorrt-llm")
    assert row(candidate, None, Release("1.2.1"))[3] == "it is the newest"
    assert row(candidate, None, Release("1.3.0"))[3] != "it is the newest"


def test_silence_is_told_from_a_part_that_no_registry_knows() -> None:
    assert row(PACKAGE)[2:] == ("cannot be asked from here", "", "unknown", "unknown")
    assert row(VersionPin("Nodes", "al2023", "v20261119"))[2] == "no package registry knows"


def test_one_registry_without_an_answer_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    chart = VersionPin("Helm charts", "keda", "2.20.2", "chart", "https://charts.example.com")
    module = VersionPin("Go modules", "sigs.k8s.io/kwok", "v0.8.0", "go", "sigs.k8s.io/kwok")

    def unanswered(*_: object) -> Release:
        raise UnansweredError("no such host")

    monkeypatch.setattr(registry_answers, "chart_release", unanswered)
    monkeypatch.setattr(registry_answers, "python_release", lambda words: Release(words, "2026-01-01"))
    monkeypatch.setattr(
        registry_answers, "go_releases", lambda _: {"sigs.k8s.io/kwok@latest": Release("v0.9.0")}
    )
    answers, problems = outdated.ask([chart, PACKAGE, module])
    assert problems == {"chart": ["https://charts.example.com: no such host"]}
    assert answers == {
        PACKAGE: (Release("boto3==1.43.106", "2026-01-01"), Release("boto3", "2026-01-01")),
        module: (None, Release("v0.9.0")),
    }


def test_dates_and_versions_are_read_from_what_uv_writes(programs: StandInPrograms) -> None:
    # The form of uv 0.13.9, `uv pip compile --format pylock.toml`.
    lock = (
        'lock-version = "1.0"\n[[packages]]\nname = "rich"\nversion = "15.0.0"\n'
        'sdist = { url = "https://example.com/rich.tar.gz", upload-time = 2026-04-12T08:24:02Z }\n'
        'wheels = [{ url = "https://example.com/rich.whl", upload-time = 2026-04-13T08:24:00Z }]\n'
    )

    def compile_lock(call: Call) -> Printed:
        Path(call.words[call.words.index("--output-file") + 1]).write_text(lock)
        return Printed()

    programs.add("uv", compile_lock)
    assert registry_answers.python_release("rich") == Release("15.0.0", "2026-04-12")


def test_modules_with_an_error_are_left_out(programs: StandInPrograms) -> None:
    # The form of Go 1.27.3, `go list -m -e -json`.
    answers = [
        {"Path": "sigs.k8s.io/kwok", "Version": "v0.8.0", "Time": "2026-06-23T03:27:00Z"},
        {"Path": "sigs.k8s.io/kwok", "Version": "v0.9.0", "Query": "latest", "Time": "2026-10-01T00:00:00Z"},
        {"Path": "sigs.k8s.io/lws", "Version": "latest", "Error": {"Err": "403 Forbidden"}},
    ]
    programs.add("go", lambda _: Printed("\n".join(json.dumps(each, indent=1) for each in answers) + "\n"))
    assert registry_answers.go_releases(["sigs.k8s.io/kwok@v0.8.0"]) == {
        "sigs.k8s.io/kwok@v0.8.0": Release("v0.8.0", "2026-06-23"),
        "sigs.k8s.io/kwok@latest": Release("v0.9.0", "2026-10-01"),
    }


def test_newest_libraries_are_read_from_what_maven_prints(
    programs: StandInPrograms, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The form of versions-maven-plugin 2.19.1.
    lines = (
        *("[INFO] The following version properties are referencing the newest available version:",),
        "[INFO]   ${lettuce.version} .................................... 7.7.0.RELEASE",
        "[INFO]   ${aws.version} ..................................... 2.46.7 -> 2.57.8",
        "[INFO] The following plugin updates are available:",
        "[INFO]   maven-jar-plugin ................................... 3.5.1 -> 3.6.0",
        "[INFO] ------------------------------------------------------------------------",
    )
    programs.add("mvn", lambda _: Printed("\n".join(lines) + "\n"))
    monkeypatch.setattr("registry_answers.shutil.which", lambda _: "/bin/mvn")
    assert registry_answers.maven_releases() == {
        "lettuce": Release("7.7.0.RELEASE"),
        "aws": Release("2.57.8"),
        "maven-jar-plugin": Release("3.6.0"),
    }


def test_every_library_of_java_has_a_row() -> None:
    named = {pin.name: pin.version for pin in pin_list.pins() if pin.registry == "maven"}
    parent = (root() / "runtime" / "java" / "pom.xml").read_text()
    assert f"<lettuce.version>{named['lettuce']}</lettuce.version>" in parent
    assert {"jackson", "aws", "junit", "maven-compiler-plugin", "maven-surefire-plugin"} <= named.keys()


def test_what_a_tool_reports_is_one_line(programs: StandInPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    programs.add("helm", lambda _: Printed("\n", "Error: no such host\nmore\n", 1))
    monkeypatch.setattr(tools, "helm", lambda: Path("helm"))
    with pytest.raises(UnansweredError, match=r"\Ano such host\Z"):
        registry_answers.chart_release("oci://example.com/chart", "chart")


@pytest.mark.clock
def test_without_a_network_it_prints_every_table_and_ends_well(tmp_path: Path) -> None:
    # Nothing listens on port 9 of the loopback address.
    nowhere = "http://127.0.0.1:9"
    environment = {
        **os.environ,
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), nowhere),
        "GOPROXY": nowhere,
        "GOMODCACHE": str(tmp_path / "modules"),
        "npm_config_registry": nowhere,
        "npm_config_fetch_retries": "0",
        "UV_DEFAULT_INDEX": nowhere,
        "UV_NO_CACHE": "1",
        "UV_OFFLINE": "1",
        # Maven takes its registry from the user's settings, so here it is missing.
        "PATH": "/nowhere",
    }
    command = [sys.executable, str(root() / "scripts/outdated.py")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "boto3" in result.stdout
    assert "it is the newest" not in result.stdout
    assert result.stdout.count("cannot be asked from here") > 60


def test_benchmarks_that_measured_other_code_are_listed_with_what_changed() -> None:
    """One whose code is the measured one is left out; a commit that git does not know is said."""
    found = {name: each for name, each in discover(benchmarks).items() if name.startswith("validate_")}
    runs = {
        "validate_growth": {"date": "2026-11-22", "commit": "0123abcd", "code": "other"},
        "validate_memory": {"date": "2026-11-22", "commit": "00000000", "code": "other"},
        "validate_time": {"commit": "4567abcd", "code": found["validate_time"].code()},
    }
    known = {"0123abcd": ("b.py", "c.py")}
    table = outdated.benchmark_table(Results(runs, []), found, lambda commit, _: known.get(commit))
    growth, memory = table.rows
    assert growth[:3] == ("validate_growth", "2026-11-22 0123abcd", "b.py, c.py")
    assert growth[3].startswith("2 of ")
    assert memory[2] == "its commit is not known here"


def test_an_advisory_is_fixed_only_if_the_pinned_release_has_the_fix() -> None:
    """A pin that goes back below a fix, or an answer that nobody checked, is found here."""
    read = advisories.advisories()
    versions = {pin.name: pin.version for pin in pin_list.pins()}
    for each in read.advisories:
        pinned = versions[read.pins[each.product]].removeprefix("v")
        if re.fullmatch(r"<[\d.]+", each.affected) and re.fullmatch(r"[\d.]+", pinned):
            has_fix = Version(pinned) >= Version(each.affected.removeprefix("<"))
            assert has_fix == (each.state == "fixed"), (each.product, pinned, each.id)


def test_an_open_advisory_is_shown_with_its_age() -> None:
    opened = [each for each in advisories.advisories().advisories if each.state == "open"]
    table = advisories.open_table(date(2026, 12, 1))
    assert [row[1] for row in table.rows] == [each.id for each in opened]
    assert all(int(row[-1]) <= (date(2026, 12, 1) - date(2026, 11, 29)).days for row in table.rows)
