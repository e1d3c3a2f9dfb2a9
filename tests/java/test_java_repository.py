"""The Maven repository that `make java-repository` writes, and an empty project that uses it."""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from benchmarks.harness.stub_endpoint import stub_endpoint
from inference_blueprints import __version__
from inference_blueprints.resources import root

GROUP = "io.github.inference-blueprints"
LIBRARIES = ("endpoint-client", "signal-reader")
PAGE = (root() / "docs" / "java-client.md").read_text(encoding="utf-8")
SHOWN = "file:///path/to/build/java-repository"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>shop</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.release>17</maven.compiler.release>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  PARTS
  <build><pluginManagement><plugins>PLUGINS</plugins></pluginManagement></build>
</project>
"""
PROGRAM = """import inferenceblueprints.endpoint.*;
import java.net.URI;
import java.time.Duration;

class Shop {
    public static void main(String[] arguments) throws Exception {
        EXAMPLE
        System.exit(0);
    }
}
"""


def fence(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found, language
    return found[1]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repository") / "java"
    ran = subprocess.run(
        ["make", "java-repository", f"JAVA_REPOSITORY={folder}"],
        cwd=root(),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "warning" not in (ran.stdout + ran.stderr).lower()
    return folder


def files_of(repository: Path, artifact: str) -> Path:
    return repository.joinpath(*GROUP.split("."), artifact, __version__)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_comes_with_its_sources_and_javadoc(repository: Path, library: str) -> None:
    """Without them, an editor shows neither, and Maven Central refuses the files."""
    folder = files_of(repository, library)
    for kind, entry in (("-sources", ".java"), ("-javadoc", "index.html"), ("", ".class")):
        with zipfile.ZipFile(folder / f"{library}-{__version__}{kind}.jar") as archive:
            assert any(name.endswith(entry) for name in archive.namelist()), kind


def test_the_poms_say_what_maven_central_demands(repository: Path) -> None:
    """As in https://central.sonatype.org/publish/requirements/."""
    parent = (files_of(repository, "inference-java") / f"inference-java-{__version__}.pom").read_text()
    for words in (
        r"</packaging>\s*<name>.+</name>\s*<description>.+</description>",
        r"<url>https://.+</url>\s*<licenses>\s*<license>\s*<name>Apache-2.0</name>\s*<url>https://.+</url>",
        r"<developers>\s*<developer>\s*<name>.+</name>",
        r"<connection>scm:git:https://.+</connection>",
    ):
        assert re.search(words, re.sub(r"<!--.*?-->\s*", "", parent, flags=re.DOTALL)), words
    for library in LIBRARIES:
        pom = (files_of(repository, library) / f"{library}-{__version__}.pom").read_text()
        assert re.search(rf"<parent>\s*<groupId>{GROUP}</groupId>", pom)
        assert re.search(r"<name>.+</name>\s*<description>.+</description>", pom)


def local_repository(folder: Path) -> Path:
    """Return a local repository with what this machine has downloaded, without this group."""
    found = Path.home() / ".m2" / "repository"
    (folder / "io" / "github").mkdir(parents=True)
    for place in (Path(), Path("io"), Path("io", "github")):
        for each in (found / place).iterdir() if (found / place).is_dir() else ():
            target = folder / place / each.name
            if not target.exists() and each.name != "inference-blueprints":
                target.symlink_to(each)
    return folder


def test_an_empty_project_uses_it_with_the_lines_of_the_page(repository: Path, tmp_path: Path) -> None:
    """Without a parent, or with a dependency that has no version, Maven refuses the library."""
    lines = fence("xml").replace(SHOWN, repository.as_uri())
    plugins = re.findall(
        r"<plugin>\s*<artifactId>(maven-(?:compiler|resources|dependency)-plugin)</artifactId>\s*<version>(.*?)<",
        (root() / "runtime" / "java" / "pom.xml").read_text(encoding="utf-8"),
    )
    managed = "".join(
        f"<plugin><artifactId>{name}</artifactId><version>{version}</version></plugin>"
        for name, version in plugins
    )
    (tmp_path / "pom.xml").write_text(POM.replace("PARTS", lines).replace("PLUGINS", managed))
    source = tmp_path / "src" / "main" / "java" / "Shop.java"
    source.parent.mkdir(parents=True)
    with stub_endpoint() as address:
        example = fence("java").replace("https://models.internal", address)
        example = example.replace("Duration.ofMillis(300)", "Duration.ofSeconds(60)")
        source.write_text(PROGRAM.replace("EXAMPLE", example))
        maven, java = shutil.which("mvn"), shutil.which("java")
        assert maven
        assert java
        # Without a network, and yet from the repository: a file is no network.
        options = ("--batch-mode", "-q", "--offline", "-Daether.offline.protocols=file")
        local = local_repository(tmp_path / "local")
        ran = subprocess.run(
            [
                *(maven, *options, f"-Dmaven.repo.local={local}", "compile"),
                *("dependency:build-classpath", "-Dmdep.outputFile=class-path"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        path = (tmp_path / "class-path").read_text().strip()
        assert "/inference-blueprints/endpoint-client/" in path
        said = subprocess.run(
            [java, "-cp", f"{tmp_path / 'target' / 'classes'}:{path}", "Shop"],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    assert said.stdout.strip() == '{"intent": "a", "confidence": 1}', said.stderr


def test_the_line_of_gradle_names_what_the_repository_has(repository: Path) -> None:
    """Gradle is not run: its line must name an artifact whose POM needs no setting of the build."""
    [(group, artifact, version)] = re.findall(r'implementation\("([^:]+):([^:]+):([^"]+)"\)', fence("kotlin"))
    assert (group, version) == (GROUP, __version__)
    pom = (files_of(repository, artifact) / f"{artifact}-{version}.pom").read_text(encoding="utf-8")
    dependencies = pom[pom.index("<dependencies>") : pom.index("</dependencies>")]
    assert "${" not in dependencies
    assert SHOWN in fence("kotlin")
