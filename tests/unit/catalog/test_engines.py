"""Engine flags: what the pinned release takes, and how a word of a command line finds its flag."""

import pytest

from inference_blueprints import catalog

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
    assert VLLM.flags[name] == catalog.Flag(name, takes_value, negatable, owner)


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
