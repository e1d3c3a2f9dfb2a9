"""Every entry of the shipped catalogue is whole and consistent."""

import json
import re
from datetime import date

import pytest

import inference_catalog as catalog
from inference_catalog.catalogue import shipped

BYTES_PER_PARAMETER = {
    "bf16": (2.0, 2.0),
    "fp8": (1.0, 1.15),
    "mxfp4": (0.53, 0.70),
    "nvfp4": (0.5625, 1.1),
    "int4": (0.5, 0.7),
}
"""Smallest and largest: quantised checkpoints keep embeddings, routers and vision towers in BF16, and some of
those in NVFP4 the attention too."""

DATE = re.compile(r"20\d\d-[01]\d(-[0-3]\d)?")


@pytest.mark.parametrize("model", catalog.models().values(), ids=lambda model: model.name)
class TestModel:
    def test_weights_are_the_parameters_at_their_type(self, model: catalog.Model) -> None:
        smallest, largest = BYTES_PER_PARAMETER[model.weight_type]
        per_parameter = model.weight_bytes / (model.parameters_billion * 1e9)
        assert smallest * 0.99 <= per_parameter <= largest * 1.01

    def test_size_in_the_name_is_the_size(self, model: catalog.Model) -> None:
        name = model.name.lower()
        # With the number of experts behind it (Llama 4), it is what one token uses.
        of_token = re.search(r"b-\d+e\b", name)
        counted = model.active_parameters_billion if of_token else model.parameters_billion
        sizes = re.findall(r"-(\d+(?:\.\d+)?)b\b", name)
        assert all(counted == pytest.approx(float(size), rel=0.25) for size in sizes)

    def test_heads_are_plausible(self, model: catalog.Model) -> None:
        assert model.attention_heads % model.kv_heads == 0
        # DeepSeek-V4 has the widest: 64 heads of 512 for 4,096 numbers.
        assert 64 <= model.head_size <= 512
        assert model.hidden_size / 2 <= model.attention_heads * model.head_size <= model.hidden_size * 9.2

    def test_a_latent_belongs_to_latent_attention(self, model: catalog.Model) -> None:
        own = [each for each in model.cached_layers if each.own and each.kind not in ("state", "none")]
        assert any(not each.kv_heads for each in own) == (model.attention == "mla")

    def test_only_models_with_experts_pass_tokens_through_a_part(self, model: catalog.Model) -> None:
        assert (model.active_parameters_billion < model.parameters_billion) == (model.experts > 0)

    def test_experts_hold_most_of_the_weights_of_a_mixture(self, model: catalog.Model) -> None:
        share = model.expert_weight_bytes / model.weight_bytes
        assert 0.6 < share < 1 if model.experts else share == 0

    def test_facts_are_stated(self, model: catalog.Model) -> None:
        assert model.vision is None or 0 < model.vision.weight_bytes < model.weight_bytes / 10
        assert model.context_length >= 8192
        assert model.licence
        assert ": " in model.source


MODELS = json.loads((shipped().directory / "models.json").read_text(encoding="utf-8"))
LICENCES = [(name, each["licence"]) for each in MODELS["licences"] for name in each["models"]]


def test_every_licence_has_a_source_or_is_not_known() -> None:
    cited = dict(LICENCES)
    assert len(cited) == len(LICENCES)
    found = {name: model.licence for name, model in catalog.models().items()}
    assert found == {name: cited.get(name, "not known") for name in found} | cited


PUBLISHED_PARAMETERS_BILLION = {
    "Qwen/Qwen3-8B": 8.19,
    "Qwen/Qwen3-32B": 32.76,
    "Qwen/Qwen3-30B-A3B": 30.53,
    "Qwen/Qwen3-235B-A22B": 235.09,
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31.07,
    "meta-llama/Llama-3.1-8B-Instruct": 8.03,
    "meta-llama/Llama-3.3-70B-Instruct": 70.55,
    "openai/gpt-oss-20b": 20.91,
    "openai/gpt-oss-120b": 116.83,
    "deepseek-ai/DeepSeek-R1": 671.03,
    "mistralai/Mistral-Small-24B-Instruct-2501": 23.57,
    "google/gemma-3-27b-it": 27.43,
    "deepseek-ai/DeepSeek-V3.2": 671,
    "zai-org/GLM-5-FP8": 744,
    "zai-org/GLM-5.2-FP8": 743,
    "MiniMaxAI/MiniMax-M2.5": 230,
    "nvidia/Llama-3.1-70B-Instruct-FP8": 70.55,
    "nvidia/Qwen3-235B-A22B-NVFP4": 235.09,
    "MiniMaxAI/MiniMax-M2": 230,
    "tencent/Hy3": 295,
}
"""As the publishers' model cards and papers say; DeepSeek without its layer for multi-token prediction.
GLM-5, MiniMax-M2.5 and DeepSeek-V3.2: `parameter_count` of github.com/vllm-project/recipes."""

PUBLISHED_CHECKPOINT_GIB = {"openai/gpt-oss-20b": 12.8, "openai/gpt-oss-120b": 60.8}
"""Table 1 of the gpt-oss model card (arXiv:2508.10925)."""


@pytest.mark.parametrize(("name", "billion"), PUBLISHED_PARAMETERS_BILLION.items())
def test_counted_parameters_are_the_published_ones(name: str, billion: float) -> None:
    assert catalog.model(name).parameters_billion == pytest.approx(billion, rel=0.006)


@pytest.mark.parametrize(("name", "gib"), PUBLISHED_CHECKPOINT_GIB.items())
def test_counted_weights_are_the_published_ones(name: str, gib: float) -> None:
    assert catalog.model(name).weight_bytes / 1024**3 == pytest.approx(gib, abs=0.05)


@pytest.mark.parametrize("instance", catalog.instance_types().values(), ids=lambda instance: instance.name)
class TestInstanceType:
    def test_name_belongs_to_the_family(self, instance: catalog.InstanceType) -> None:
        assert instance.name.split(".")[0] == instance.family

    def test_accelerators_are_counted_where_there_are_any(self, instance: catalog.InstanceType) -> None:
        assert (instance.accelerator_count > 0) == (instance.accelerator is not None)

    def test_efa_interfaces_have_a_card(self, instance: catalog.InstanceType) -> None:
        assert 0 <= instance.efa_interfaces <= instance.network_cards
        assert instance.network_cards >= 1

    def test_sizes_are_positive(self, instance: catalog.InstanceType) -> None:
        numbers = (instance.vcpu, instance.memory_mib, instance.max_pods, instance.ebs_bandwidth_mbps)
        assert min(*numbers, instance.network_bandwidth_mbps) > 0
        assert instance.local_nvme_gb is None or instance.local_nvme_gb > 0

    def test_price_is_the_table_s(self, instance: catalog.InstanceType) -> None:
        assert instance.usd_per_hour == catalog.prices().usd_per_hour.get(instance.name)
        assert instance.usd_per_hour is None or 0.01 < instance.usd_per_hour < 200


@pytest.mark.parametrize("accelerator", catalog.accelerators().values(), ids=lambda entry: entry.name)
class TestAccelerator:
    def test_resource_is_the_manufacturer_s(self, accelerator: catalog.Accelerator) -> None:
        prefix = {"nvidia": "nvidia.com/", "aws": "aws.amazon.com/"}[accelerator.manufacturer]
        assert accelerator.resource_name is not None
        assert accelerator.resource_name.startswith(prefix)

    def test_some_instance_type_carries_it(self, accelerator: catalog.Accelerator) -> None:
        assert any(instance.accelerator is accelerator for instance in catalog.instance_types().values())

    def test_memory_is_plausible(self, accelerator: catalog.Accelerator) -> None:
        assert 16 * 1024 <= accelerator.memory_mib <= 300 * 1024

    def test_a_driver_keeps_some_memory(self, accelerator: catalog.Accelerator) -> None:
        assert 0.88 <= accelerator.usable_mib / accelerator.memory_mib < 0.9995


def test_h200_has_what_pytorch_states() -> None:
    """``nvidia-smi`` lists 143,771 MiB; PyTorch "has a total capacity of 139.80 GiB"."""
    assert catalog.accelerators()["h200"].memory_bytes / 1024**3 == pytest.approx(139.80, abs=0.01)


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "efa"),
    [
        ("g6e.2xlarge", "l40s", 1, 0),
        ("p4d.24xlarge", "a100-40gb", 8, 4),
        ("p4de.24xlarge", "a100-80gb", 8, 4),
        ("p5.48xlarge", "h100", 8, 32),
        ("p5en.48xlarge", "h200", 8, 16),
        ("p6-b300.48xlarge", "b300", 8, 16),
        ("inf2.48xlarge", "inferentia2", 12, 0),
        ("trn2.48xlarge", "trainium2", 16, 16),
        ("c8g.4xlarge", "graviton4", 1, 0),
        ("c7i.4xlarge", None, 0, 0),
    ],
)
def test_known_instance_types(name: str, accelerator: str | None, count: int, efa: int) -> None:
    instance = catalog.instance_type(name)
    found = instance.accelerator.name if instance.accelerator else None
    assert (found, instance.accelerator_count, instance.efa_interfaces) == (accelerator, count, efa)


def test_fractional_gpus_are_left_out() -> None:
    assert not [name for name in catalog.instance_types() if name.startswith("g6f.")]


def test_prices_say_where_when_and_whence() -> None:
    prices = catalog.prices()
    assert prices.region == "us-east-1"
    assert DATE.fullmatch(prices.date)
    assert "Karpenter" in prices.source
    assert "p5e.48xlarge" not in prices.usd_per_hour


def test_zones_belong_to_their_region() -> None:
    for region, zones in catalog.regions().items():
        assert len(zones) >= 2
        assert all(re.fullmatch(re.escape(region) + "[a-f]", zone) for zone in zones)
        assert len(set(zones)) == len(zones)


def test_every_region_that_offers_instance_types_is_a_region() -> None:
    offered = catalog.offered_instance_types()
    assert offered.keys() <= catalog.regions().keys()
    assert frozenset().union(*offered.values()) <= catalog.instance_types().keys()


def test_p6_b300_is_not_offered_in_stockholm_as_recorded() -> None:
    # moto 5.2.5, ec2/resources/instance_type_offerings/region/eu-north-1.json.gz
    assert "p6-b200.48xlarge" in catalog.offered_instance_types()["eu-north-1"]
    assert "p6-b300.48xlarge" not in catalog.offered_instance_types()["eu-north-1"]


def test_zones_without_a_control_plane_are_those_of_the_eks_user_guide() -> None:
    # https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html, Subnet requirements for clusters.
    assert catalog.zone_ids_without_control_plane() == {"use1-az3", "usw1-az2", "cac1-az3"}


def test_every_data_file_carries_source_and_date() -> None:
    for path in shipped().directory.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert re.search(r'"source": "\S', text), path
        assert re.search(rf'"date": "{DATE.pattern}"', text), path


def test_support_of_every_kubernetes_version_is_known() -> None:
    # Twelve months of extended support follow (Amazon EKS User Guide, Kubernetes version lifecycle).
    for release in shipped().kubernetes_versions.values():
        standard, extended = (
            date.fromisoformat(day) for day in (release.standard_support_ends, release.extended_support_ends)
        )
        assert extended == standard.replace(year=standard.year + 1)
