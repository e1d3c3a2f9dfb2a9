"""The suites of tests: what each runs, what it needs, and when continuous integration runs it."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import inference_catalog as catalog

ROOT = Path(__file__).resolve().parent.parent
#: The last results, which `ci.py --record` writes.
RESULTS = ROOT / "tests" / "suite_results.json"

Tier = Literal["every run", "near a change", "release"]

_PROOFS = [proof for feature in catalog.features() for proof in feature.proofs]
#: Files of tests that the catalogue runs before a release only. Their tests of the first tier stay there.
BEFORE_RELEASE = frozenset(
    name for proof in _PROOFS if proof.before_release for name in proof.files
) - frozenset(name for proof in _PROOFS if not proof.before_release for name in proof.files)


@dataclass(frozen=True)
class Suite:
    """A target of the Makefile that tests something."""

    target: str
    shows: str
    tier: Tier
    folders: tuple[str, ...] = ()
    """Folders of its tests. `mark` selects among them. A suite without folders is chosen by no import."""
    mark: str | None = None
    waits: bool = False
    """Whether it waits for time to pass, or for real programs. Suites that do not give way to it."""
    programs: str = ""
    """Arguments of make that build its programs before all tests."""
    sources: tuple[str, ...] = ()
    """Files that it depends on beside what its tests import."""
    page: str = ""
    """The page in docs that has the last result of each of its tests."""

    def files(self, root: Path) -> list[str]:
        """Return its files of tests, relative to the root."""
        found = [
            path.relative_to(root).as_posix()
            for folder in self.folders
            for path in sorted((root / folder).rglob("test_*.py"))
        ]
        return [name for name in found if self.has(root, name)]

    def has(self, root: Path, name: str) -> bool:
        """Whether a file has tests of this suite: it names the mark, or they have the mark clock by place."""
        if not name.startswith(tuple(f"{folder}/" for folder in self.folders)):
            return False
        text = (root / name).read_text(encoding="utf-8")
        named = {each for each in MARKS if f"mark.{each}" in text}
        if name in BEFORE_RELEASE and self.tier != "release":
            return False
        if self.mark == "experimental":
            return name in BEFORE_RELEASE and not named & RELEASE_MARKS
        if self.mark is None:
            return True
        return self.mark in named or (
            self.mark == "clock" and name.startswith("tests/local/") and _has_unmarked_tests(text)
        )


def _has_unmarked_tests(text: str) -> bool:
    """Whether a test has the mark of no suite. Those of tests/local then have the mark clock."""
    body = ast.parse(text).body
    whole = " ".join(ast.unparse(each) for each in body if isinstance(each, ast.Assign))
    tests = (each for each in body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_"))
    marks = (" ".join(map(ast.unparse, each.decorator_list)) for each in tests)
    return any(not any(f"mark.{mark}" in f"{whole} {own}" for mark in MARKS) for own in marks)


_LAYERS = ("tests/unit", "tests/charts", "tests/runtime", "tests/templates")

SUITES = (
    Suite("lint", "style and types of all code", "every run"),
    Suite("verify", "generated files are up to date", "every run"),
    Suite("test", "every layer, without programs and waiting", "every run"),
    Suite(
        "test-thorough",
        "what needs much processor time: all shipped blueprints, drawn blueprints, large inputs",
        "near a change",
        _LAYERS,
        "thorough",
    ),
    Suite(
        "test-clock",
        "real servers on this machine: the emulator, engines, Prometheus, etcd, batch workers",
        "near a change",
        ("tests/local", *_LAYERS),
        "clock",
        waits=True,
        programs="programs PROGRAMS=etcd,prometheus",
    ),
    Suite("run", "the README's second command: a platform is deployed and answers", "every run", waits=True),
    Suite(
        "check-lives",
        "platforms are deployed, changed and destroyed",
        "near a change",
        ("tests/local",),
        "lives",
        waits=True,
    ),
    Suite(
        "test-faults",
        "batch jobs with killed workers, lost events and large inputs",
        "near a change",
        ("tests/local", "tests/runtime"),
        "faults",
        waits=True,
    ),
    Suite(
        "test-java",
        "the programs in Java, with real servers",
        "near a change",
        ("tests/java",),
        waits=True,
        sources=("runtime/java/", "contracts/inference_contracts/", "tests/runtime/signals/"),
    ),
    Suite(
        "test-cluster",
        "manifests and controllers on a real Kubernetes API server",
        "near a change",
        ("tests/cluster",),
        waits=True,
        programs="programs",
    ),
    Suite(
        "test-experimental",
        "tests that only [experimental features](support-levels.md) need",
        "release",
        ("tests/local", "tests/runtime"),
        "experimental",
        waits=True,
    ),
    Suite(
        "release",
        "all distributions work in empty environments, with locked, newest and lowest versions",
        "release",
    ),
    Suite("check-templates", "checkov, and a hundred drawn blueprints", "release"),
    Suite(
        "test-scaling",
        "decisions beside the real KEDA",
        "release",
        ("tests/cluster/autoscaling",),
        "scaling",
        waits=True,
        programs="programs KEDA=1",
    ),
    Suite(
        "test-controllers",
        "a slowed worker is found",
        "release",
        ("tests/local",),
        "controllers",
        waits=True,
        programs="programs PROGRAMS=prometheus",
    ),
    Suite(
        "test-ecs",
        "tasks of ECS as rendered, and the same cases on EKS",
        "release",
        ("tests/local/conformance",),
        "ecs",
        waits=True,
        programs="programs PROGRAMS=etcd,prometheus",
        page="ecs.md",
    ),
    Suite(
        "test-llama",
        "the real llama-server",
        "release",
        ("tests/llama",),
        "llama",
        waits=True,
        programs="programs PROGRAMS=prometheus LLAMA=1",
        page="graviton.md",
    ),
    Suite(
        "test-engines",
        "real vLLM on processors",
        "release",
        ("tests/engines",),
        "engines",
        waits=True,
        programs="programs PROGRAMS=prometheus",
        page="real-engines.md",
    ),
)

#: Suites that continuous integration runs at once: those of a lane one after the other, each lane beside the
#: others. All platforms are in the last lane: Linux limits how many folders a user watches (fs.inotify).
LANES = (
    ("lint",),
    ("verify", "test", "test-thorough", "test-java", "test-cluster"),
    ("test-clock", "run", "check-lives", "test-faults"),
)

#: The marks that take a test out of the first tier.
MARKS = tuple(suite.mark for suite in SUITES if suite.mark)
RELEASE_MARKS = {suite.mark for suite in SUITES if suite.mark and suite.tier == "release"}


def suites_of(root: Path, name: str) -> list[Suite]:
    """Return the suites that run tests of a file."""
    found = [suite for suite in SUITES if suite.has(root, name)]
    text = (root / name).read_text(encoding="utf-8")
    if name.startswith(tuple(f"{layer}/" for layer in _LAYERS)) and "pytestmark = pytest.mark" not in text:
        found.insert(0, next(suite for suite in SUITES if suite.target == "test"))
    return found


if __name__ == "__main__":
    print(*next(suite for suite in SUITES if suite.target == sys.argv[1]).files(ROOT))
