"""Who may import whom: the table of docs/architecture.md as data."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inference_blueprints.resources import root

LIBRARY = "inference_blueprints"

#: Folder: the modules of the house, and of the AWS CDK, that its files may import.
ALLOWED = {
    f"{LIBRARY}/contracts": {f"{LIBRARY}.contracts"},
    # Programs that run in an image or an environment of somebody else: they ship without the contracts.
    "runtime/weights": {"weights"},
    "runtime/task_start": {"task_start", "weights"},
    "runtime/signals": {"signals"},
    "runtime/benchmark": {"benchmark"},
    "runtime/image_build": {"image_build"},
    "runtime/canary": {"canary", f"{LIBRARY}.contracts"},
    "runtime/batch": {"batch", "signals", f"{LIBRARY}.contracts"},
    "runtime/streaming": {"streaming", "signals", f"{LIBRARY}.contracts"},
    # What the controllers share, and the controllers, which bring their pure decisions.
    "runtime/operations": {"operations", f"{LIBRARY}.promql", f"{LIBRARY}.contracts"},
    "runtime/gpu_health": {
        *("gpu_health", "operations"),
        *(f"{LIBRARY}.gpu_health", f"{LIBRARY}.promql", f"{LIBRARY}.contracts"),
    },
    "runtime/capacity_shift": {
        *("capacity_shift", "operations"),
        *(f"{LIBRARY}.capacity_shift", f"{LIBRARY}.promql", f"{LIBRARY}.contracts"),
    },
    # Runs beside the Prometheus of a platform on ECS: boto3 besides, which its image has.
    "runtime/task_targets": {"task_targets", f"{LIBRARY}.contracts"},
    f"{LIBRARY}/catalog": {f"{LIBRARY}.catalog", f"{LIBRARY}.errors", f"{LIBRARY}.resources"},
    f"{LIBRARY}/spec": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/serving": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/monitoring": {
        f"{LIBRARY}.monitoring",
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
    },
    f"{LIBRARY}/targets/eks": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.targets.collector",
        f"{LIBRARY}.targets.eks",
        f"{LIBRARY}.targets.target",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/targets/ecs": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.targets.collector",
        f"{LIBRARY}.targets.ecs",
        f"{LIBRARY}.targets.target",
        # How KEDA reads the times of floors, so that scheduled actions mean the same.
        f"{LIBRARY}.autoscaling.cron_schedule",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/pages": {f"{LIBRARY}.pages"},
    f"{LIBRARY}/tables": {f"{LIBRARY}.tables"},
    f"{LIBRARY}/figures": {f"{LIBRARY}.figures"},
    f"{LIBRARY}/sizing": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.sizing",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/pricing": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.pricing",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/picture": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.picture",
        f"{LIBRARY}.sizing",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
    },
    f"{LIBRARY}/planning": {
        f"{LIBRARY}.planning",
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.monitoring",
        f"{LIBRARY}.picture",
        f"{LIBRARY}.pricing",
        f"{LIBRARY}.sizing",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.tables",
        f"{LIBRARY}.pages",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/measurement": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.measurement",
        f"{LIBRARY}.pricing",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/simulation": {
        f"{LIBRARY}.simulation",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
    },
    # Ships with the Lambda functions of both controllers: urllib3 besides, which Lambda provides.
    f"{LIBRARY}/promql": {f"{LIBRARY}.promql"},
    # Ships with the Lambda functions of GPU health: numpy and the standard library besides.
    f"{LIBRARY}/gpu_health": {f"{LIBRARY}.contracts", f"{LIBRARY}.gpu_health"},
    # Ships with the Lambda function of the capacity shift: numpy and the standard library besides.
    f"{LIBRARY}/capacity_shift": {f"{LIBRARY}.contracts", f"{LIBRARY}.capacity_shift"},
    f"{LIBRARY}/fleet": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.fleet",
        f"{LIBRARY}.gpu_health",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.tables",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.sizing",
        f"{LIBRARY}.pricing",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/autoscaling": {f"{LIBRARY}.autoscaling", f"{LIBRARY}.errors", f"{LIBRARY}.resources"},
    f"{LIBRARY}/shift_simulation": {
        f"{LIBRARY}.shift_simulation",
        f"{LIBRARY}.autoscaling",
        f"{LIBRARY}.capacity_shift",
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/processes": {f"{LIBRARY}.processes", f"{LIBRARY}.errors"},
    f"{LIBRARY}/targets": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.targets",
        f"{LIBRARY}.autoscaling.cron_schedule",
        f"{LIBRARY}.processes",
        f"{LIBRARY}.measurement",
        f"{LIBRARY}.simulation",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.tools",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/tuning": {
        f"{LIBRARY}.tuning",
        f"{LIBRARY}.simulation",
        f"{LIBRARY}.planning",
        f"{LIBRARY}.pricing",
        f"{LIBRARY}.sizing",
        f"{LIBRARY}.tables",
        f"{LIBRARY}.pages",
        f"{LIBRARY}.measurement",
        f"{LIBRARY}.loading",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.tools",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/benchmarking": {
        f"{LIBRARY}.benchmarking",
        f"{LIBRARY}.deployment",
        f"{LIBRARY}.resources",
        f"{LIBRARY}.measurement",
        f"{LIBRARY}.tuning",
        f"{LIBRARY}.tools",
        f"{LIBRARY}.simulation",
        f"{LIBRARY}.planning",
        f"{LIBRARY}.tables",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.errors",
    },
    f"{LIBRARY}/deployment": {
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.deployment",
        f"{LIBRARY}.loading",
        f"{LIBRARY}.measurement",
        f"{LIBRARY}.monitoring",
        f"{LIBRARY}.planning",
        f"{LIBRARY}.promql",
        f"{LIBRARY}.figures",
        f"{LIBRARY}.pages",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.synthesis",
        f"{LIBRARY}.tools",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    f"{LIBRARY}/local": {LIBRARY},
    f"{LIBRARY}/cli": {LIBRARY},
    "constructs/inference_constructs": {
        "inference_constructs",
        "aws_cdk",
        "cdk_nag",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.contracts",
    },
    "stacks": {
        "stacks",
        "inference_constructs",
        "aws_cdk",
        "cdk_nag",
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.spec",
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.serving",
        f"{LIBRARY}.monitoring",
        f"{LIBRARY}.targets.ecs",
        f"{LIBRARY}.targets.eks",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
    "app.py": {LIBRARY, "stacks", "aws_cdk", "cdk_nag"},
}
#: Packages in `runtime/`, each a program.
PROGRAMS = (
    *("batch", "benchmark", "canary", "capacity_shift", "gpu_health", "image_build", "operations"),
    *("signals", "task_start", "task_targets", "weights"),
)
HOUSE = (
    *(LIBRARY, "stacks", "inference_constructs", "aws_cdk", "cdk_nag", "runtime", "benchmarks", "tests"),
    *PROGRAMS,
)


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide where a module lives"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_within(module: str, packages: set[str] | tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def files_of(room: str) -> list[Path]:
    place = root() / room
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@pytest.mark.parametrize("room", ALLOWED)
def test_a_room_imports_only_what_it_may(room: str) -> None:
    files = files_of(room)
    assert files, f"{room} has no Python file: the table names a room that is gone"
    forbidden = [
        f"{file.relative_to(root())} imports {module}"
        for file in files
        for module in imported_modules(file)
        if is_within(module, HOUSE) and not is_within(module, ALLOWED[room])
    ]
    assert forbidden == []


def test_every_python_room_is_in_the_table() -> None:
    rooms = {
        str(path.parent.relative_to(root()))
        for package in (LIBRARY, "stacks", "constructs", "runtime")
        for path in (root() / package).rglob("*.py")
    }
    homeless = {
        room
        for room in rooms
        if room != LIBRARY and not any(Path(room).is_relative_to(known) for known in ALLOWED)
    }
    assert homeless == set()


@pytest.mark.parametrize("room", ["spec", "catalog", "serving", "sizing", "pricing", "picture", "planning"])
def test_a_pure_room_does_not_load_the_cdk(room: str) -> None:
    modules = [
        ".".join(file.relative_to(root()).with_suffix("").parts)
        for file in files_of(f"{LIBRARY}/{room}")
        if file.name != "__init__.py"
    ]
    program = "import importlib, sys\n" + "".join(
        f"importlib.import_module({module!r})\n" for module in modules
    )
    program += (
        "print([name for name in sys.modules if name.split('.')[0] in ('aws_cdk', 'jsii', 'constructs')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=root(), capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_only_the_composition_root_reads_context_and_environment() -> None:
    readers = [
        str(file.relative_to(root()))
        for room in ("stacks", "constructs/inference_constructs")
        for file in files_of(room)
        if any(
            word in file.read_text(encoding="utf-8")
            for word in ("os.environ", "os.getenv", "try_get_context")
        )
    ]
    assert readers == []
