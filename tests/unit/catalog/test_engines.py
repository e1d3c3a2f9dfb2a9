"""Engine flags: what the pinned release takes, and how a word of a command line finds its flag."""

import pytest

import inference_catalog as catalog

VLLM = catalog.engine("vllm")


@pytest.mark.parametrize(
    ("name", "takes_value", "negatable", "owner"),
    [
        ("--model", True, False, "vllm"),
        ("--max-model-len", True, False, "vllm"),
        ("--tensor-parallel-size", True, False, "vllm"),
        ("--kv-transfer-config", True, False, "vllm"),
        ("--enable-prefix-caching", False, True, "vllm"),
        ("--trust-remote-code", False, True, "vllm"),
        ("--disable-log-stats", False, False, "vllm"),
        ("--disaggregation-mode", True, False, "dynamo"),
        ("--discovery-backend", True, False, "dynamo"),
        ("--router-kv-events", False, True, "dynamo"),
    ],
)
def test_recorded_flags(name: str, takes_value: bool, negatable: bool, owner: str) -> None:  # noqa: FBT001
    flag = VLLM.flags[name]
    assert (flag.takes_value, flag.negatable, flag.owner) == (takes_value, negatable, owner)


@pytest.mark.parametrize(
    ("name", "takes_value", "negatable"),
    [
        ("--enable-auto-tool-choice", False, True),
        ("--tool-call-parser", True, False),
        ("--chat-template", True, False),
        ("--lora-modules", True, False),
        ("--headless", False, False),
        ("--port", True, False),
    ],
)
def test_recorded_flags_of_the_server(name: str, takes_value: bool, negatable: bool) -> None:  # noqa: FBT001
    flag = VLLM.server_flags[name]
    assert (flag.takes_value, flag.negatable, flag.owner) == (takes_value, negatable, "vllm")


def test_each_program_s_parsers_are_recorded() -> None:
    """``deepseek_v31`` is vLLM's name, ``deepseek_v3_1`` Dynamo's, ``deepseekv31`` SGLang's."""
    sglang = catalog.engine("sglang").flags
    assert "deepseek_v31" in VLLM.server_flags["--tool-call-parser"].choices
    assert "openai_gptoss" in VLLM.flags["--reasoning-parser"].choices
    assert "deepseek_v3_1" in VLLM.flags["--dyn-tool-call-parser"].choices
    assert {"deepseekv31", "hermes"} <= set(sglang["--tool-call-parser"].choices)
    assert "gpt-oss" in sglang["--reasoning-parser"].choices
    assert VLLM.flags["--max-model-len"].choices == ()


@pytest.mark.parametrize(
    "name",
    ["--swap-space", "--disable-log-requests", "--guided-decoding-backend", "--task", "--api-key", "--port"],
)
def test_flags_of_other_releases_and_programs_are_not_there(name: str) -> None:
    assert VLLM.flag(name) is None


def test_a_negation_finds_its_flag() -> None:
    assert VLLM.flag("--no-enable-prefix-caching") is VLLM.flags["--enable-prefix-caching"]


@pytest.mark.parametrize("name", ["--no-model", "--no-disable-log-stats", "--no-", "--nonsense"])
def test_what_cannot_be_negated_is_unknown(name: str) -> None:
    assert VLLM.flag(name) is None


def test_a_negatable_flag_is_a_switch() -> None:
    assert not [flag.name for flag in VLLM.flags.values() if flag.negatable and flag.takes_value]


def test_the_image_is_that_of_the_recorded_release() -> None:
    assert VLLM.image == "nvcr.io/nvidia/ai-dynamo/vllm-runtime"
    assert VLLM.version in VLLM.source
    assert VLLM.engine_version in VLLM.source
