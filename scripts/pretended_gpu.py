"""Makes an engine believe in GPUs on a machine without any, so that its classes say what they would allocate.

`layers_inside.py` uses this for vLLM, and `sglang_inside.py` parts of it for SGLang, both with the Python of
vLLM's environment. Nothing is allocated and no kernel runs:

- the environment's vLLM is the build for CPUs. Its Python files are those of the build for CUDA, and its
  compiled modules for CUDA are missing, so modules in which every name exists stand for them
- a subclass of vLLM's own platform for CUDA answers questions about the device
- this process is the first device of a tensor parallel group whose other members do not exist (PyTorch's
  group "fake"), and of one stage of a pipeline
- every tensor is created on PyTorch's device "meta", which has shapes and no data
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

Capability = tuple[int, int]

_ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}

#: vLLM's compiled modules for CUDA, and those of packages that only a machine with a GPU has.
_COMPILED_MODULES = (
    "vllm._C_stable_libtorch",
    "vllm._flashkda_C",
    "vllm._flashmla_C",
    "vllm._flashmla_extension_C",
    "vllm._moe_C_stable_libtorch",
    "vllm._qutlass_C",
    "vllm.cumem_allocator",
    "vllm.third_party.deep_gemm",
    "vllm.third_party.flashmla.flash_mla_interface",
    "vllm.vllm_flash_attn._vllm_fa2_C",
    "vllm.vllm_flash_attn._vllm_fa3_C",
)
_MISSING_PACKAGES = ("cutlass", "flashinfer", "humming", "quack", "tilelang")
_OPERATORS = (
    "_C",
    "_C_cache_ops",
    "_C_cuda_utils",
    "_C_custom_ar",
    "_flashkda_C",
    "_flashmla_C",
    "_flashmla_extension_C",
    "_moe_C",
    "_qutlass_C",
    "_rocm_C",
    "_vllm_fa2_C",
    "_vllm_fa3_C",
)

#: What compiled functions answer about a capability: true from the first and below the second
#: (csrc/libtorch_stable/quantization/w8a8/cutlass/scaled_mm_entry.cu and
#: csrc/libtorch_stable/quantization/fp4/nvfp4_scaled_mm_entry.cu of vLLM's main near 0.31, for CUDA 13).
_COMPILED_ANSWERS: Mapping[str, tuple[Capability, Capability]] = {
    "cutlass_scaled_mm_supports_fp8": ((8, 9), (99, 0)),
    "cutlass_scaled_mm_supports_block_fp8": ((9, 0), (99, 0)),
    "cutlass_scaled_mm_supports_fp4": ((10, 0), (13, 0)),
    "cutlass_group_gemm_supported": ((9, 0), (12, 0)),
    "mxfp4_experts_quant_supported": ((10, 0), (12, 0)),
}

_MEMORY_BYTES = 80 << 30
_PROCESSORS = 132
#: As many as the largest group: eight devices in each of four stages.
_DEVICES = 32


class _AnyType(type):
    """A class in which every name exists."""

    def __getattr__(cls, name: str) -> Any:
        return _stand_in(name)

    def __getitem__(cls, _: Any) -> Any:
        return cls


class _AnyObject:
    """Stands for an object of a missing package. As a decorator, it returns what it decorates."""

    def __getattr__(self, name: str) -> Any:
        return _stand_in(name)

    def __call__(self, *values: Any, **named: Any) -> Any:
        is_decorator = len(values) == 1 and not named and callable(values[0])
        return values[0] if is_decorator and not isinstance(values[0], type) else self

    def __getitem__(self, _: Any) -> Any:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __or__(self, _: Any) -> Any:
        return self

    __ror__ = __or__


def _stand_in(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name[:1].isupper():
        return _AnyType(name, (), {"__init__": _constant(None)})
    return _AnyObject()


class _AnyModule(types.ModuleType):
    """A module in which every name exists."""

    __file__ = "stands for a missing module"
    __path__: list[str] = []  # noqa: RUF012 -- as of any package

    def __getattr__(self, name: str) -> Any:
        return _stand_in(name)


class MissingPackages:
    """Finds every module of a missing package."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def find_spec(self, name: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] not in self._names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _AnyModule(spec.name)

    def exec_module(self, _: types.ModuleType) -> None:
        """Do nothing: the module has every name."""


class _MissingOperator:
    """Stands for an operator that only the build for CUDA has. It may be looked up, not called."""

    def __getattr__(self, name: str) -> _MissingOperator:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> None:
        raise RuntimeError("an operator of the build for CUDA was called")


class Operators:
    """A namespace of operators in which each exists, for classes that only look one up."""

    def __init__(self, real: Any, capability: Capability) -> None:
        self._real = real
        self._capability = capability

    def __getattr__(self, name: str) -> Any:
        if name in _COMPILED_ANSWERS:
            first, end = _COMPILED_ANSWERS[name]
            return _constant(first <= self._capability < end)
        if name == "get_workspace_size":  # scratch memory of FlashKDA, which is not counted
            return lambda *_: 0
        try:
            return getattr(self._real, name)
        except AttributeError:
            if name.startswith("__"):
                raise
            return _MissingOperator()


class _Silent:
    """Stands for a CUDA stream or event."""

    def __init__(self, *_: Any, **__: Any) -> None:
        """Do nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_, **__: None

    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def pretend(capability: Capability) -> None:
    """Make vLLM, which may not be imported yet, believe in GPUs of this compute capability."""
    os.environ.update(_ENVIRONMENT)
    version = importlib.metadata.version
    # With "+cpu" in the version, vLLM switches Triton off (``vllm/platforms/__init__.py`` of 0.31.0).
    importlib.metadata.version = lambda distribution_name: version(distribution_name).removesuffix("+cpu")
    for name in _COMPILED_MODULES:
        module = _AnyModule(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, loader=None)
        sys.modules.setdefault(name, module)
    sys.meta_path.append(MissingPackages(_MISSING_PACKAGES))
    import torch
    import torch.library

    for name in _OPERATORS:
        setattr(torch.ops, name, Operators(getattr(torch.ops, name), capability))
    tolerate_missing_operators(torch.library)
    pretend_device(torch.cuda, capability)
    from vllm import platforms

    platforms._current_platform = _platform(capability)
    _answer_for_flashinfer()
    _inspect_models_here()


def tolerate_missing_operators(library: Any) -> None:
    """Let code register what stands for operators that this machine does not have."""
    register = library.register_fake

    def register_fake(operator: Any, function: Any = None, /, **named: Any) -> Any:
        def attempt(given: Any) -> Any:
            try:
                return register(operator, given, **named)
            except Exception:  # noqa: BLE001 -- an operator that only the build for CUDA has
                return given

        return attempt if function is None else attempt(function)

    library.register_fake = register_fake


def pretend_device(cuda: Any, capability: Capability) -> None:
    """Let PyTorch answer for a device of this compute capability."""
    properties = types.SimpleNamespace(
        name="pretended",
        major=capability[0],
        minor=capability[1],
        total_memory=_MEMORY_BYTES,
        multi_processor_count=_PROCESSORS,
        is_integrated=False,
        shared_memory_per_block_optin=232448,
        shared_memory_per_multiprocessor=233472,
        L2_cache_size=50 << 20,
        warp_size=32,
    )
    cuda.get_device_capability = lambda *_, **__: capability
    cuda.get_device_properties = lambda *_, **__: properties
    cuda.current_device = lambda: 0
    cuda.set_device = lambda *_: None
    cuda.Stream = cuda.Event = _Silent
    cuda.current_stream = cuda.default_stream = lambda *_, **__: _Silent()


def _platform(capability: Capability) -> Any:
    """Return vLLM's platform for CUDA with a pretended device."""
    from vllm.platforms.cuda import CudaPlatformBase
    from vllm.platforms.interface import DeviceCapability

    answers: Mapping[str, Any] = {
        "device_count": _DEVICES,
        "get_device_capability": DeviceCapability(*capability),
        "get_device_communicator_cls": (
            "vllm.distributed.device_communicators.base_device_communicator.DeviceCommunicatorBase"
        ),
        "get_device_name": "pretended",
        "get_device_total_memory": _MEMORY_BYTES,
        "is_arch_support_pdl": capability >= (9, 0),
        "is_fully_connected": True,
        "is_integrated_gpu": False,
        "is_pin_memory_available": False,
        "num_compute_units": _PROCESSORS,
        "use_custom_allreduce": False,
    }
    methods = {name: classmethod(_constant(value)) for name, value in answers.items()}
    return type("PretendedCuda", (CudaPlatformBase,), methods)()


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *_, **__: value


def _answer_for_flashinfer() -> None:
    """Answer what vLLM asks FlashInfer's functions, for the release that its build for CUDA requires.

    ``BatchMLAPagedAttentionWrapper.run`` of flashinfer-python 0.7.0.post1 has the argument ``ckv_scale_arr``.
    """
    from vllm.utils import flashinfer

    flashinfer.has_flashinfer_sm90_nope_mla = lambda: True


def _inspect_models_here() -> None:
    """Let vLLM inspect model classes in this process: a process of its own would see the real machine."""
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()
    lazy = registry._LazyRegisteredModel
    lazy._load_modelinfo_from_cache = _constant(None)
    lazy._save_modelinfo_to_cache = _constant(None)


def pretend_group(size: int, data_parallel_size: int = 1, stages: int = 1, stage: int = 0) -> None:
    """Make this process the first device of a stage whose other members, and other stages, do not exist.

    With several data parallel ranks, there are as many such groups. They are not combined with stages.
    """
    import torch.distributed as dist
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from vllm.distributed import parallel_state
    from vllm.distributed.device_communicators import shm_broadcast

    world, rank = size * stages * data_parallel_size, size * stage
    make = dist.new_group
    dist.new_group = lambda ranks=None, *_, **__: make(ranks, backend="fake")
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    shm_broadcast.MessageQueue.create_from_process_group = staticmethod(lambda *_, **__: None)
    parallel_state.in_the_same_node_as = lambda *_, **__: [True] * world
    parallel_state._node_count = lambda *_, **__: 1
    parallel_state.init_distributed_environment(
        world_size=world,
        rank=rank,
        local_rank=0,
        distributed_init_method="tcp://127.0.0.1:1",  # never opened: the group exists
        backend="fake",
    )
    parallel_state.initialize_model_parallel(size, stages, backend="fake")


def without_data() -> AbstractContextManager[Any]:
    """Create every tensor on "meta", whatever device the code asks for, except the CPU by name."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._device import _device_constructors

    constructors = _device_constructors()
    meta = torch.device("meta")

    def moved(value: Any) -> Any:
        is_cuda = isinstance(value, (str, torch.device)) and torch.device(value).type == "cuda"
        return meta if is_cuda else value

    class WithoutData(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, _: Any, values: Sequence[Any] = (), named: Mapping[str, Any] | None = None
        ) -> Any:
            options = dict(named or {})
            if function in constructors:
                device = options.get("device")
                if device is None or torch.device(device).type != "cpu":
                    options["device"] = meta
                options.pop("pin_memory", None)
            elif function is torch.Tensor.cuda:
                return values[0]
            elif function in (torch.Tensor.cpu, torch.Tensor.item, torch.Tensor.tolist) and values[0].is_meta:
                # Of values that a constructor computes, such as slopes of ALiBi. No size depends on them.
                zeros = torch.zeros(values[0].shape, device="cpu")
                return values[0] if function is torch.Tensor.cpu else getattr(zeros, function.__name__)()
            elif function is torch.where and len(values) == 1 and values[0].is_meta:
                # Which experts a device holds, for messages.
                return function(torch.zeros(values[0].shape, device="cpu"))
            elif function is torch.Tensor.to:
                values = [moved(each) for each in values]
            if "device" in options:
                options["device"] = moved(options["device"])
            return function(*values, **options)

    return WithoutData()
