"""Who may import whom: the table of docs/architecture.md as data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
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
    "runtime/request_filter": {"request_filter", f"{LIBRARY}.contracts"},
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
    "runtime/discovery_roles": {"discovery_roles", f"{LIBRARY}.contracts"},
    "runtime/task_targets": {"task_targets", f"{LIBRARY}.contracts"},
    f"{LIBRARY}/catalog": {
        f"{LIBRARY}.catalog",
        f"{LIBRARY}.contracts",
        f"{LIBRARY}.errors",
        f"{LIBRARY}.resources",
    },
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
    *("discovery_roles", "signals", "task_start", "task_targets", "weights"),
)
HOUSE = (
    *(LIBRARY, "stacks", "inference_constructs", "aws_cdk", "cdk_nag", "runtime", "benchmarks", "tests"),
    *PROGRAMS,
)


def syntax(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def names_of(node: ast.AST, file: Path) -> Iterator[str]:
    """Yield what a statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"{file}: relative imports hide where a module lives"
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imported_modules(file: Path) -> tuple[str, ...]:
    return tuple(name for node in ast.walk(syntax(file)) for name in names_of(node, file))


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


@cache
def modules_by_name() -> dict[str, Path]:
    """Return every module that the house's Python can import, by its name."""
    tops = (LIBRARY, "stacks", "constructs/inference_constructs", *(f"runtime/{name}" for name in PROGRAMS))
    found = {}
    for top in tops:
        above = (root() / top).parent
        for file in files_of(top):
            parts = file.relative_to(above).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


@cache
def loaded_at_import(file: Path) -> tuple[str, ...]:
    """Return what a module imports when it is imported, so not in functions and not for type checkers."""
    found: list[str] = []
    waiting: list[ast.AST] = [syntax(file)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        found += names_of(node, file)
        waiting += (
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
        )
    return tuple(found)


def loaded_with(room: str) -> dict[str, str]:
    """Return every name that importing a folder's modules loads, each with the module that imports it."""
    known = modules_by_name()
    waiting = [name for name, file in known.items() if file.is_relative_to(root() / room)]
    found = dict.fromkeys(waiting, room)
    while waiting:
        module = waiting.pop()
        # Importing `a.b.c` loads `a` and `a.b` too; and `c` may be a name in `a.b`.
        above = [module.rpartition(".")[0]] if "." in module else []
        for name in (*above, *(loaded_at_import(known[module]) if module in known else ())):
            if name not in found:
                found[name] = module
                waiting.append(name)
    return found


def cdk_modules(room: str) -> dict[str, str]:
    """Return which packages of the CDK a folder's modules load, each with the module that imports it."""
    packages = {"aws_cdk", "cdk_nag", "constructs", "jsii"}
    return {name: by for name, by in loaded_with(room).items() if name in packages}


@pytest.mark.parametrize("room", ["spec", "catalog", "serving", "sizing", "pricing", "picture", "planning"])
def test_a_pure_room_does_not_load_the_cdk(room: str) -> None:
    """It turns red when a module of the room reaches the CDK through any chain of imports."""
    assert cdk_modules(f"{LIBRARY}/{room}") == {}


def test_chains_of_imports_are_followed() -> None:
    """It turns red when the check above sees nothing: stacks load the CDK, also through constructs."""
    assert "aws_cdk" in cdk_modules("stacks")
    assert "inference_constructs" in {name.partition(".")[0] for name in loaded_with("stacks")}
    assert cdk_modules("runtime/canary") == {}


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
