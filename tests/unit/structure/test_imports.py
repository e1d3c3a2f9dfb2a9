"""Who may import whom: the picture of docs/architecture.md as data."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from inference_blueprints.resources import root

LIBRARY = "inference_blueprints"
CONTRACTS, CATALOG, DECISIONS = "inference_contracts", "inference_catalog", "inference_decisions"
#: Below all rooms of the library.
GROUND = {CONTRACTS, CATALOG, "inference_runtime", f"{LIBRARY}.resources", f"{LIBRARY}.tools"}
#: The rooms of the library. Each may import those before it.
COLUMN = ("spec", "serving", "render", "report", "measure", "operate", "cli")
#: Modules beside the rooms that only some rooms may import: those from this one on.
FROM = {"loading": "report", "synthesis": "operate", "garbage": "cli"}


def _library() -> Iterator[tuple[str, set[str]]]:
    """Yield each room of the library with the modules that its files may import."""
    for number, room in enumerate(COLUMN):
        before = {f"{LIBRARY}.{each}" for each in COLUMN[: number + 1]}
        beside = {f"{LIBRARY}.{name}" for name, first in FROM.items() if COLUMN.index(first) <= number}
        yield f"{LIBRARY}/{room}", {*GROUND, *before, *beside, DECISIONS}


#: Folder: the modules of this project, and of the AWS CDK, that its files may import.
ALLOWED = {
    f"contracts/{CONTRACTS}": {CONTRACTS},
    f"catalog/{CATALOG}": {CATALOG, CONTRACTS},
    "runtime/inference_runtime": {"inference_runtime"},
    # They ship with the Lambda functions of the controllers: numpy, urllib3 and the standard library besides.
    f"runtime/{DECISIONS}/promql": {f"{DECISIONS}.promql"},
    f"runtime/{DECISIONS}/repairs": {f"{DECISIONS}.repairs", CONTRACTS},
    f"runtime/{DECISIONS}/capacity_shift": {f"{DECISIONS}.capacity_shift", CONTRACTS},
    # Programs that run in an image or an environment of somebody else: they ship without the contracts.
    "runtime/weights": {"weights"},
    "runtime/task_start": {"task_start", "weights"},
    "runtime/signals": {"signals"},
    "runtime/benchmark": {"benchmark"},
    "runtime/image_build": {"image_build"},
    "runtime/watched_object": {"watched_object"},
    "runtime/canary": {"canary", CONTRACTS},
    "runtime/request_filter": {"request_filter", CONTRACTS},
    # Takes tokens of the ledger's store as the signals' client does.
    "runtime/front_door": {"front_door", "signals", CONTRACTS},
    "runtime/door_reconciliation": {"door_reconciliation", CONTRACTS},
    "runtime/key_api": {"key_api", CONTRACTS},
    "runtime/key_rotation": {"key_rotation", CONTRACTS},
    "runtime/batch": {"batch", "signals", CONTRACTS},
    "runtime/streaming": {"streaming", "signals", CONTRACTS},
    # What the controllers share, and the controllers, which bring their pure decisions.
    "runtime/operations": {"operations", f"{DECISIONS}.promql", CONTRACTS},
    **{
        f"runtime/{name}": {name, "operations", f"{DECISIONS}.{own}", f"{DECISIONS}.promql", CONTRACTS}
        for name, own in (("gpu_health", "repairs"), ("capacity_shift", "capacity_shift"))
    },
    # Runs beside the Prometheus of a platform on ECS: boto3 besides, which its image has.
    "runtime/discovery_roles": {"discovery_roles", CONTRACTS},
    # boto3 besides, which its image has.
    "runtime/certificate_files": {"certificate_files", CONTRACTS},
    # The text of a build, which has the standard library only.
    "runtime/door_certificates": {"door_certificates"},
    "runtime/task_targets": {"task_targets", CONTRACTS},
    **dict(_library()),
    # What draws and counts knows no plan's page, and tables know nothing.
    f"{LIBRARY}/report/pages": {f"{LIBRARY}.report.pages"},
    f"{LIBRARY}/report/tables.py": {f"{LIBRARY}.report.tables"},
    "local/inference_local": {"inference_local", LIBRARY, DECISIONS, *GROUND},
    "constructs/inference_constructs": {
        *("inference_constructs", "inference_runtime", "aws_cdk", "cdk_nag"),
        *(CATALOG, CONTRACTS, DECISIONS),
    },
    "constructs/examples": {"inference_constructs", "aws_cdk", CATALOG, CONTRACTS},
    "stacks": {
        *("stacks", "inference_constructs", "aws_cdk", "cdk_nag"),
        *(*GROUND, f"{LIBRARY}.spec", f"{LIBRARY}.serving", f"{LIBRARY}.render"),
    },
    "app.py": {LIBRARY, CONTRACTS, "stacks", "aws_cdk", "cdk_nag"},
}
#: Packages in `runtime/`, each a program.
PROGRAMS = (
    *("batch", "benchmark", "canary", "capacity_shift", "certificate_files", "gpu_health", "image_build"),
    "operations",
    *("discovery_roles", "door_certificates", "request_filter", "signals", "streaming", "task_start"),
    *(
        "door_reconciliation",
        "front_door",
        "key_api",
        "key_rotation",
        "task_targets",
        "watched_object",
        "weights",
    ),
)
#: Folders of the packages that other code imports.
PACKAGES = (
    *(LIBRARY, "stacks", f"contracts/{CONTRACTS}", f"catalog/{CATALOG}", f"runtime/{DECISIONS}"),
    *("runtime/inference_runtime", "constructs/inference_constructs", "local/inference_local"),
)
PROJECT = (
    *(Path(package).name for package in PACKAGES),
    *("aws_cdk", "cdk_nag", "runtime", "benchmarks", "tests", *PROGRAMS),
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
    assert files, f"{room} has no Python file: the table names a folder that does not exist"
    forbidden = [
        f"{file.relative_to(root())} imports {module}"
        for file in files
        for module in imported_modules(file)
        if is_within(module, PROJECT) and not is_within(module, ALLOWED[room])
    ]
    assert forbidden == []


def test_every_folder_with_python_is_in_the_table() -> None:
    folders = {
        str(path.parent.relative_to(root()))
        for package in (LIBRARY, "stacks", "catalog", "constructs", "contracts", "local", "runtime")
        for path in (root() / package).rglob("*.py")
    }
    unknown = {
        folder
        for folder in folders - {LIBRARY, f"runtime/{DECISIONS}", "catalog"}  # its build hook is no package
        if not any(Path(folder).is_relative_to(known) for known in ALLOWED)
    }
    assert unknown == set()


@cache
def modules_by_name() -> dict[str, Path]:
    """Return every module that this project's Python can import, by its name."""
    tops = (*PACKAGES, *(f"runtime/{name}" for name in PROGRAMS))
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


@pytest.mark.parametrize(
    "room", [f"catalog/{CATALOG}", *(f"{LIBRARY}/{each}" for each in ("spec", "serving", "report"))]
)
def test_a_pure_room_does_not_load_the_cdk(room: str) -> None:
    """It turns red when a module of the room reaches the CDK through any chain of imports."""
    assert cdk_modules(room) == {}


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


#: Files that read another `workload` than the blueprint's key: what a replay was scaled to.
OTHER_WORKLOADS = {
    f"{LIBRARY}/measure/replay/trace_replay.py",
    "local/inference_local/report/report_builder.py",
}


def test_only_traffic_reads_workloads() -> None:
    """Red for code that sizes by requests in real time alone, and forgets those of queues and jobs."""
    places = [*(root() / LIBRARY).rglob("*.py"), *(root() / "stacks").rglob("*.py")]
    places += (root() / "local").rglob("*.py")
    found = [
        f"{name}:{node.lineno}"
        for path in sorted(places)
        for name in [path.relative_to(root()).as_posix()]
        if not name.startswith(f"{LIBRARY}/spec/") and name != f"{LIBRARY}/serving/traffic.py"
        if name not in OTHER_WORKLOADS
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "workload"
    ]
    assert found == [], "take the figures from serving/traffic.py"
