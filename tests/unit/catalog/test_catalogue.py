"""The loader: one edit adds an entry, mistakes are named, and nothing is loaded before it is needed."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.catalogue import shipped
from inference_catalog.charts import charts, helm_values_directory
from inference_catalog.entry_builder import LazyEntries


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the shipped data that a test may edit."""
    return Path(shutil.copytree(shipped().directory, tmp_path / "data"))


def edit_json(path: Path, key: str, name: str, entry: dict[str, Any]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    document[key][name] = entry
    path.write_text(json.dumps(document), encoding="utf-8")


def copy_of_entry(path: Path, key: str, name: str) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))[key][name]
    return entry


def test_an_accelerator_is_one_edit(data: Path) -> None:
    entry = copy_of_entry(data / "accelerators.json", "accelerators", "h200") | {"usable_mib": 500_000}
    edit_json(data / "accelerators.json", "accelerators", "x900", entry)
    assert catalog.Catalogue(data).accelerators["x900"].memory_bytes == 500_000 * 1024**2
    assert "x900" not in catalog.accelerators()


def test_an_instance_type_is_one_edit(data: Path) -> None:
    with (data / "instance_types.csv").open("a", encoding="utf-8") as table:
        table.write("g99.2xlarge,g99,amd64,8,65536,l40s,1,450,5000,5000,1,0,58\n")
    with (data / "prices/us-east-1.csv").open("a", encoding="utf-8") as table:
        table.write("g99.2xlarge,1.5\n")
    edited = catalog.Catalogue(data)
    added = edited.instance_types["g99.2xlarge"]
    assert added.accelerator is edited.accelerators["l40s"]
    assert (added.local_nvme_gb, added.max_pods, added.usd_per_hour) == (450, 58, 1.5)
    assert edited.prices["us-east-1"].usd_per_hour["g99.2xlarge"] == 1.5


def test_a_region_s_prices_are_one_file(data: Path) -> None:
    (data / "prices/eu-west-1.csv").write_text(
        "# source: a test\n# date: 2026-11\nname,usd_per_hour\ng6e.xlarge,2.5\n", encoding="utf-8"
    )
    table = catalog.Catalogue(data).prices["eu-west-1"]
    assert (table.region, table.date, table.usd_per_hour) == ("eu-west-1", "2026-11", {"g6e.xlarge": 2.5})


def test_a_model_is_one_edit(data: Path) -> None:
    entry = copy_of_entry(data / "models.json", "models", "Qwen/Qwen3-8B") | {"layers": 3}
    edit_json(data / "models.json", "models", "acme/tiny", entry)
    added = catalog.Catalogue(data).models["acme/tiny"]
    assert (added.name, added.layers, added.vision) == ("acme/tiny", 3, None)


def test_an_engine_is_one_file(data: Path) -> None:
    engine = {
        "image": "registry.example/engine",
        "version": "2.0",
        "digest": None,
        "engine_version": "7",
        "date": "2026-11-01",
        "source": "a test",
        "flags": {"--fast": {"takes_value": False, "negatable": True, "owner": "engine"}},
    }
    (data / "engines/newcomer.json").write_text(json.dumps(engine), encoding="utf-8")
    added = catalog.Catalogue(data).engines["newcomer"]
    assert (added.name, added.image) == ("newcomer", "registry.example/engine")
    assert added.flag("--no-fast") == catalog.Flag(
        "--fast", takes_value=False, negatable=True, owner="engine"
    )


def test_a_latency_profile_is_one_file(data: Path) -> None:
    profiles = data / "latency_profiles/vllm/Qwen/Qwen3-8B"
    profile = json.loads((profiles / "l40s-tp1.json").read_text(encoding="utf-8"))
    (profiles / "h200-tp16.json").write_text(
        json.dumps(profile | {"accelerator": "h200", "tensor_parallel_size": 16}), encoding="utf-8"
    )
    added = catalog.Catalogue(data).latency_profile("Qwen/Qwen3-8B", "h200", 16, "vllm")
    assert added is not None
    assert (added.accelerator, added.tensor_parallel_size) == ("h200", 16)


def test_a_chart_is_one_edit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = Path(shutil.copytree(helm_values_directory(), tmp_path / "helm_values"))
    with (copy / "charts.yaml").open("a", encoding="utf-8") as table:
        table.write(
            "newcomer:\n  repository: oci://registry.example/newcomer\n  version: 1.2.3\n  digest: null\n"
            '  namespace: kube-system\n  release: newcomer\n  minimumKubernetes: "1.30"\n'
        )
    monkeypatch.setattr("inference_catalog.charts.helm_values_directory", lambda: copy)
    added = charts.__wrapped__()["newcomer"]  # past the cache, which holds the shipped charts
    assert (added.version, added.minimum_kubernetes) == ("1.2.3", "1.30")


@pytest.mark.parametrize(
    ("removed", "added", "message"),
    [
        (["layers", "licence"], {}, "missing fields: layers, licence; unknown fields: none"),
        ([], {"colour": "red"}, "missing fields: none; unknown fields: colour"),
        (["layers"], {"colour": "red", "age": 3}, "missing fields: layers; unknown fields: age, colour"),
    ],
    ids=["missing", "unknown", "both"],
)
def test_every_missing_and_unknown_field_is_named(
    data: Path, removed: list[str], added: dict[str, Any], message: str
) -> None:
    entry = copy_of_entry(data / "models.json", "models", "Qwen/Qwen3-8B")
    kept = {name: value for name, value in entry.items() if name not in removed}
    edit_json(data / "models.json", "models", "acme/broken", kept | added)
    with pytest.raises(catalog.CatalogueError) as raised:
        _ = catalog.Catalogue(data).models["acme/broken"]
    assert str(raised.value).endswith(f"models.json: acme/broken: {message}")


def test_an_accelerator_that_does_not_exist_is_named(data: Path) -> None:
    with (data / "instance_types.csv").open("a", encoding="utf-8") as table:
        table.write("g99.2xlarge,g99,amd64,8,65536,l40,1,450,5000,5000,1,0,58,\n")
    with pytest.raises(catalog.CatalogueError, match=r"g99\.2xlarge: got accelerator 'l40', .*l40s"):
        _ = catalog.Catalogue(data).instance_types["g99.2xlarge"]


def test_every_entry_can_be_built() -> None:
    """Entries are built when they are first used: a wrong one would be found by its first user."""
    whole = catalog.Catalogue(shipped().directory)
    lazy = [each for name in dir(whole) if isinstance(each := getattr(whole, name), LazyEntries)]
    assert len(lazy) > 10
    for entries in lazy:
        assert [*entries] == [*dict(entries.items())]


def test_json_that_cannot_be_read_has_a_position(data: Path) -> None:
    (data / "models.json").write_text('{\n  "models": }', encoding="utf-8")
    with pytest.raises(catalog.CatalogueError, match=r"models\.json:2:13: Expecting value"):
        _ = catalog.Catalogue(data).models


def test_an_unknown_name_suggests_close_ones() -> None:
    with pytest.raises(catalog.UnknownEntryError) as raised:
        catalog.instance_type("g6e.2xlrage")
    assert raised.value.close_matches[0] == "g6e.2xlarge"
    assert str(raised.value).startswith(
        "got instance type 'g6e.2xlrage', not in the catalogue; did you mean 'g6e.2xlarge'"
    )


def test_an_unknown_name_without_neighbours_suggests_nothing() -> None:
    with pytest.raises(catalog.UnknownEntryError, match=r"^got model 'zzzz', not in the catalogue$"):
        catalog.model("zzzz")


def test_the_tables_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        catalog.models()["acme/tiny"] = catalog.model("Qwen/Qwen3-8B")  # type: ignore[index]


@pytest.mark.clock
def test_importing_reads_no_file_and_no_heavy_library() -> None:
    program = """
import sys
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
import inference_catalog as catalog
data = lambda: sorted({path.rsplit("/", 1)[1] for path in opened if "/inference_catalog/data/" in path})
assert data() == [], data()
catalog.model("Qwen/Qwen3-8B")
assert data() == ["models.json"], data()
catalog.latency_profile("Qwen/Qwen3-8B", "l40s", 1, "vllm")
assert data() == ["l40s-tp1.json", "models.json"], data()
catalog.instance_type("g6e.2xlarge")
hardware = ["accelerators.json", "instance_types.csv", "us-east-1.csv"]
read = sorted([*hardware, "l40s-tp1.json", "models.json"])
assert data() == read, data()
heavy = {"aws_cdk", "pydantic", "yaml", "numpy", "jinja2", "rich", "typer"} & sys.modules.keys()
assert not heavy, heavy
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
