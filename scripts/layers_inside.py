"""Asks vLLM's own classes what models cost: bytes of weights, what each layer caches, bytes of requests.

Stages of a pipeline are built one after the other, each as the first device of its stage. vLLM's own
``get_kv_cache_configs`` then divides the layers of all of them into groups. A draft is built and joined with
its model by vLLM's own ``load_eagle_model``, without files of weights.

Runs with the Python of vLLM's environment, which does not have this library. `record_model_layers.py` starts
it as ``layers_inside.py SM JOBS RESULTS``:

- SM: the compute capability of the pretended GPUs, such as ``9.0``
- JOBS: lines of JSON, each an object with ``name``, ``configuration``, ``exported`` (or null),
  ``tensor_parallel_size``, ``kv_cache_dtype`` and ``arguments`` (more arguments of the engine); perhaps
  ``pipeline_parallel_size``, and ``speculation``: an object with ``name`` and ``method``, and with
  ``configuration`` if the draft has a file of its own
- RESULTS: receives a line of JSON per job, with ``error`` if vLLM refuses it

Libraries are imported once; each job runs in a fork of its own, because a process can be a member of one
group.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pretended_gpu

Json = dict[str, Any]
Answer = Callable[[Mapping[str, Any]], Json]

LENGTHS = (1024, 4096, 8192, 32768, 131072)
"""Tokens of the requests that are counted, besides the longest that the model allows."""

#: Fields of vLLM's specification of a layer (``vllm/v1/kv_cache_interface.py`` of 0.31.0).
_SPEC_FIELDS = (
    "num_kv_heads",
    "head_size",
    "head_size_v",
    "dtype",
    "sliding_window",
    "attention_chunk_size",
    "tokens_per_state",
    "shapes",
    "dtypes",
    "mamba_type",
    "tp_replicated",
    "cache_dtype_str",
)


def count(job: Mapping[str, Any]) -> Json:
    """Build a model's class as vLLM does before it loads weights, and ask it."""
    stages = job.get("pipeline_parallel_size", 1)
    # This process can be a member of one group only, so the other stages are built in forks.
    others = [_other_stage(job, stage) for stage in range(1, stages)]
    config, model, specs, layouts, facts = _build(job, 0)
    found = _model_facts(config, model) | {"layers": _layers(specs)} | facts
    if stages == 1:
        pooled = _pools(config, [specs], [layouts])[0] if specs else {}
        return found | pooled | _kernel_blocks(config, specs)
    told = [{"weights": found["weights"], "layers": found["layers"]}, *(each[0] for each in others)]
    pools = _pools(config, [specs, *(each[1] for each in others)], [layouts, *(each[2] for each in others)])
    for name in ("weights", "weight_types", "layers", "shared"):
        del found[name]
    return found | {"stages": [stage | pool for stage, pool in zip(told, pools, strict=True)]}


def _build(job: Mapping[str, Any], stage: int) -> tuple[Any, Any, Json, list[str], Json]:
    """Return the configuration, the model, its layers, the layouts of its kernels, and facts of its draft."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.engine.arg_utils import EngineArgs
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.platforms import current_platform
    from vllm.transformers_utils.config import _CONFIG_REGISTRY
    from vllm.utils.torch_utils import set_default_torch_dtype
    from vllm.v1.attention.backends import utils
    from vllm.v1.worker import worker_base, workspace
    from vllm.v1.worker.gpu.attn_utils import get_kv_cache_spec

    size, stages = job["tensor_parallel_size"], job.get("pipeline_parallel_size", 1)
    folder = Path(tempfile.mkdtemp(prefix="layers-"))
    try:
        write_model(folder, job)
        know(job["configuration"].get("model_type"), _CONFIG_REGISTRY)
        config = EngineArgs(
            model=str(folder),
            skip_tokenizer_init=True,
            load_format="dummy",
            tensor_parallel_size=size,
            pipeline_parallel_size=stages,
            kv_cache_dtype=job["kv_cache_dtype"],
            enforce_eager=True,
            max_num_seqs=256,
            distributed_executor_backend="uni" if size * stages == 1 else "mp",
            disable_custom_all_reduce=True,
            mm_processor_cache_gb=0,
            disable_log_stats=True,
            **_speculation(folder, job),
            **job.get("arguments", {}),
        ).create_engine_config()
        if job.get("exported") and not config.model_config.quantization:
            raise ValueError("vLLM takes this hf_quant_config.json for none of its own")
        with set_current_vllm_config(config):
            pretended_gpu.pretend_group(size, config.parallel_config.data_parallel_size, stages, stage)
            workspace.init_workspace_manager(torch.device("meta"))
            with set_default_torch_dtype(config.model_config.dtype), pretended_gpu.without_data():
                model = initialize_model(config)
                facts = _draft_facts(config, model) if job.get("speculation") else {}
            current_platform.update_block_size_for_backend(config)
            specs = dict(get_kv_cache_spec(config))
            backends = worker_base.get_current_attn_backends(config)
            layouts = [each.name for each in utils.get_supported_kv_cache_layouts(backends)] if specs else []
            return config, model, specs, layouts, facts
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _other_stage(job: Mapping[str, Any], stage: int) -> tuple[Json, Json, list[str]]:
    """Return the weights and layers of a later stage, its specifications, and the layouts of its kernels."""

    def built() -> tuple[Json, Json, list[str]]:
        config, model, specs, layouts, _ = _build(job, stage)
        return (
            {"weights": _model_facts(config, model)["weights"], "layers": _layers(specs)},
            specs,
            layouts,
        )

    found: tuple[Json, Json, list[str]] | Json = _in_fork(built)
    if isinstance(found, tuple):
        return found
    raise RuntimeError(f"stage {stage}: {found['error']}")


def _speculation(folder: Path, job: Mapping[str, Any]) -> Json:
    """Return the argument of a draft, after its configuration is written."""
    speculation = job.get("speculation")
    if not speculation:
        return {}
    chosen = {"method": speculation["method"], "num_speculative_tokens": speculation.get("tokens", 1)}
    if speculation.get("configuration"):
        own = folder / "draft"
        own.mkdir()
        write_model(own, speculation)
        chosen["model"] = str(own)
    return {"speculative_config": chosen}


def _draft_facts(config: Any, model: Any) -> Json:
    """Build the draft and join it with its model, and return its weights before and after."""
    from vllm.model_executor.model_loader.utils import initialize_model
    from vllm.v1.worker.gpu.spec_decode.eagle import utils

    whole: list[int] = []

    def built(vllm_config: Any, model_config: Any) -> Any:
        draft = initialize_model(vllm_config=vllm_config, model_config=model_config)
        whole.append(sum(_bytes(each) for each in _tensors(draft).values()))
        return draft

    utils.get_model = built
    draft = utils.load_eagle_model(model, config)
    own = _tensors(draft).keys() - _tensors(model).keys()
    tensors = _tensors(draft)
    return {
        "draft_class": type(draft).__qualname__,
        "draft_weights": whole[0],
        "draft_weights_if_shared": sum(_bytes(tensors[each]) for each in own),
    }


def _tensors(model: Any) -> dict[int, Any]:
    """Return the weights of a model by their identity, so that shared ones count once."""
    return {id(tensor): tensor for _, tensor in model.named_parameters(remove_duplicate=False)}


def _bytes(tensor: Any) -> int:
    return int(tensor.numel() * tensor.element_size())


def write_model(folder: Path, job: Mapping[str, Any]) -> None:
    """Write the files of a model without weights."""
    # Without `auto_map`, vLLM's own class is taken, and no code of the publisher's.
    configuration = {name: value for name, value in job["configuration"].items() if name != "auto_map"}
    (folder / "config.json").write_text(json.dumps(configuration), encoding="utf-8")
    if job.get("exported"):
        (folder / "hf_quant_config.json").write_text(json.dumps(job["exported"]), encoding="utf-8")


def know(model_type: object, known: Collection[str]) -> None:
    """Let transformers read files of a type that it does not know: every field as it stands, no defaults.

    model_type: The type in the file.
    known: Types that the engine knows besides.
    """
    from transformers import AutoConfig, PretrainedConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    known = {*CONFIG_MAPPING, *known}

    def section(name: str, value: Any) -> Any:
        if isinstance(value, list) and value and isinstance(value[0], dict):
            return [_Fields(each) for each in value]
        if not name.endswith("_config") or not isinstance(value, dict):
            return value
        given = dict(value)
        own = given.pop("model_type", None)
        return AutoConfig.for_model(own, **given) if own in known else PretrainedConfig(**given)

    class OwnConfig(PretrainedConfig):  # type: ignore[misc]
        def __init__(self, **fields: Any) -> None:
            super().__init__(**{name: section(name, value) for name, value in fields.items()})

    if isinstance(model_type, str) and model_type not in known:
        OwnConfig.model_type = model_type
        AutoConfig.register(model_type, OwnConfig)


class _Fields(dict[str, Any]):
    """An object whose fields are read as attributes, as publishers' own classes of configurations allow."""

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        value = self[name]
        return _Fields(value) if isinstance(value, dict) else value


def _model_facts(config: Any, model: Any) -> Json:
    """Return what holds for the whole model."""
    types = bytes_by_type(model)
    shared = [
        layer
        for layer in config.compilation_config.static_forward_context.values()
        if getattr(layer, "kv_sharing_target_layer_name", None)
    ]
    return {
        "class": type(model).__qualname__,
        "dtype": type_name(config.model_config.dtype),
        "kv": config.cache_config.cache_dtype,
        "longest": config.model_config.max_model_len,
        "batched": config.scheduler_config.max_num_batched_tokens,
        "weights": sum(types.values()),
        "weight_types": types,
        "block": config.cache_config.block_size,
        "state_mode": getattr(config.cache_config, "mamba_cache_mode", None),
        "shared": len(shared),
    }


def bytes_by_type(model: Any) -> dict[str, int]:
    """Return the bytes of a model's parameters, by their type."""
    types = Counter[str]()
    for tensor in _tensors(model).values():
        types[type_name(tensor.dtype)] += _bytes(tensor)
    return dict(types)


def type_name(dtype: Any) -> str:
    """Return the name of a type of PyTorch."""
    return str(dtype).removeprefix("torch.")


def _layers(specs: Mapping[str, Any]) -> list[Json]:
    """Return the specifications of layers, equal ones once with their number."""
    kinds: Counter[str] = Counter(json.dumps(_spec(spec), sort_keys=True) for spec in specs.values())
    return [{"count": number, **json.loads(text)} for text, number in kinds.items()]


def _spec(spec: Any) -> Json:
    values = ((name, getattr(spec, name, None)) for name in _SPEC_FIELDS)
    head = {"kind": type(spec).__name__, "block": spec.block_size, "page": spec.page_size_bytes}
    return head | {name: _plain(value) for name, value in values if value not in (None, False)}


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if isinstance(value, (int, str)) else type_name(value)


def _pools(config: Any, specs: list[Json], layouts: list[list[str]]) -> list[Json]:
    """Return vLLM's groups of layers, the bytes of a block of the pool, and those of requests, by stage."""
    from vllm.config import set_current_vllm_config
    from vllm.v1.attention.backends import utils
    from vllm.v1.core import kv_cache_utils
    from vllm.v1.engine import core

    core.register_all_kvcache_specs(config)
    every = [spec for stage in specs for spec in stage.values()]
    layout = utils.resolve_kv_cache_layout(config, [each for each in layouts if each], every)
    config.cache_config.kv_cache_layout = layout.name
    longest = config.model_config.max_model_len
    with set_current_vllm_config(config):
        divided = kv_cache_utils.get_kv_cache_configs(config, specs, [_MUCH_MEMORY] * len(specs))
    found = []
    for groups in (each.kv_cache_groups for each in divided):
        requests = {}
        for tokens in sorted({*LENGTHS, longest}):
            if tokens <= longest:
                config.model_config.max_model_len = tokens
                requests[str(tokens)] = kv_cache_utils._max_memory_usage_bytes_from_groups(config, groups)
        config.model_config.max_model_len = longest
        found.append(
            {
                "groups": [
                    [
                        len(group.layer_names),
                        type(group.kv_cache_spec).__name__,
                        group.kv_cache_spec.block_size,
                    ]
                    for group in groups
                ],
                "pool_block": kv_cache_utils._pool_bytes_per_block(groups),
                "requests": requests,
            }
        )
    return found


def _kernel_blocks(config: Any, specs: Json) -> Json:
    """Return the tokens of the blocks that kernels see, by group, and of those that prefixes are found by.

    They are asked for only where the tokens of a block are an argument. FlashInfer's kernels of TensorRT-LLM
    are taken for present: vLLM's build for CUDA requires flashinfer-cubin, which has them.
    """
    if not (specs and config.cache_config.user_specified_block_size):
        return {}
    from types import SimpleNamespace

    from vllm.config import set_current_vllm_config
    from vllm.utils import flashinfer
    from vllm.v1.core import kv_cache_utils
    from vllm.v1.worker.utils import prepare_kernel_block_sizes

    flashinfer.has_nvidia_artifactory = lambda: True
    flashinfer.supports_trtllm_attention.cache_clear()
    layers = config.compilation_config.static_forward_context
    with set_current_vllm_config(config):
        config.validate_block_size()
        [divided] = kv_cache_utils.get_kv_cache_configs(config, [specs], [_MUCH_MEMORY])
        groups = [
            [
                SimpleNamespace(backend=each)
                for each in dict.fromkeys(layers[name].get_attn_backend() for name in group.layer_names)
            ]
            for group in divided.kv_cache_groups
        ]
        kernels = prepare_kernel_block_sizes(divided, groups)
        _, hashed = kv_cache_utils.resolve_kv_cache_block_sizes(divided, config)
    names = sorted({each.backend.get_name() for group in groups for each in group})
    return {"backends": names, "kernel_blocks": kernels, "hash_block": hashed}


#: Enough for one request of any length. Groups and bytes do not depend on it.
_MUCH_MEMORY = 1 << 50


def _import_all() -> None:
    """Import what every job needs, before the forks."""
    import vllm.engine.arg_utils
    import vllm.model_executor.model_loader.utils
    import vllm.v1.core.kv_cache_utils
    import vllm.v1.worker.gpu.attn_utils  # noqa: F401


def _in_fork(work: Callable[[], Any]) -> Any:
    """Return what work returns in a fork, whose messages go nowhere; an object with ``error`` if it fails."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        try:
            found = pickle.dumps(work())
        except BaseException as error:  # noqa: BLE001 -- engines refuse in many ways, and each is a result
            found = pickle.dumps({"error": f"{type(error).__name__}: {error}"[:400]})
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(found)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else {"error": "the process ended without an answer"}  # noqa: S301


def _jobs(path: Path) -> Iterator[Json]:
    yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())


def answer_jobs(capability: str, jobs: Path, results: Path, answer: Answer) -> None:
    """Write the answer to every job, each from a fork of its own."""
    with results.open("w", encoding="utf-8") as file:
        for job in _jobs(jobs):
            named = {
                "name": job["name"],
                "sm": capability,
                "tp": job["tensor_parallel_size"],
                "given_kv": job["kv_cache_dtype"],
            }
            if "pipeline_parallel_size" in job:
                named["pp"] = job["pipeline_parallel_size"]
            if job.get("speculation"):
                named |= {"draft": job["speculation"]["name"], "guessed": job["speculation"].get("tokens", 1)}
            if job.get("arguments"):
                named["arguments"] = job["arguments"]
            file.write(json.dumps(named | _in_fork(partial(answer, job))) + "\n")
            file.flush()


def main(capability: str, jobs: Path, results: Path) -> None:
    """Count every job."""
    major, minor = map(int, capability.split("."))
    pretended_gpu.pretend((major, minor))
    _import_all()
    answer_jobs(capability, jobs, results, count)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
