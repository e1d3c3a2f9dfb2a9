"""The programs and files of the control plane, all from Go modules: one row per program or set of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

KUBERNETES_VERSION = "v1.36.3"
KARPENTER_VERSION = "v1.15.1"
KEDA_VERSION = "v2.20.2"
KUEUE_VERSION = "v0.19.2"
LWS_VERSION = "v0.9.0"
#: Prometheus 3.8: the API is version 0 as a Go module.
PROMETHEUS_VERSION = "v0.313.5"
INFERENCE_EXTENSION_VERSION = "v1.6.0"
#: The module proxy has no release of it. The definitions of this commit equal those of v3.5.0.
LOAD_BALANCER_CONTROLLER_VERSION = "v0.0.0-20260423195125-93ff3b5fdaad"

#: Why a module stands at its version, if that is not the newest. `make outdated` reports it.
REASONS: Mapping[str, str] = MappingProxyType(
    {
        "github.com/kedacore/keda/v2": "the release of the pinned chart",
        "github.com/kubernetes-sigs/aws-load-balancer-controller": "the proxy has no release; these "
        "definitions equal those of the pinned chart",
        "github.com/prometheus/prometheus": "the newest release all of whose dependencies the proxy serves",
        "k8s.io/kubernetes": "the newest release of a version that a blueprint may have",
        "sigs.k8s.io/gateway-api-inference-extension": "the newest release whose archive the proxy serves",
        "sigs.k8s.io/karpenter": "the newest release whose archive the proxy serves",
        "sigs.k8s.io/kueue": "the newest release that the proxy serves",
        "sigs.k8s.io/lws": "the newest release that the proxy serves",
    }
)


@dataclass(frozen=True)
class Program:
    """A program that is built from a Go module."""

    name: str
    """File name of the program."""
    module: str
    version: str
    """`module`, `version`: Go module and its version."""
    package: str
    """Import path of the main package, or the name of a folder below ``sources`` with a main package of
    ours."""
    requires: Mapping[str, str] = field(default_factory=dict)
    """Further modules with a pinned version, ``{module: version}``."""
    replaces: Mapping[str, str] = field(default_factory=dict)
    """Replacements for required versions that no module proxy has, ``{module: version}``."""
    staging: str | None = None
    """Version of every module that the module replaces by its ``./staging`` folder. Such replacements apply
    only in the module's own repository."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Strings that the linker sets, ``{import path and name: value}``."""
    rewrites: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Text of the main package that no flag or variable can change, ``{file: (old, new)}``."""
    called: tuple[str, ...] = ()
    """Names that the program is started as, if it has several."""


@dataclass(frozen=True)
class ModuleFiles:
    """Files that are copied from a Go module."""

    name: str
    """Name of the folder they are copied to."""
    module: str
    version: str
    """`module`, `version`: Go module and its version."""
    patterns: tuple[str, ...]
    """Paths within the module as ``Path.glob`` patterns. Their folders are kept."""


def _kubernetes_variables(version: str) -> dict[str, str]:
    major, minor = re.findall(r"\d+", version)[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return {f"k8s.io/component-base/version.{name}": value for name, value in values.items()}


ETCD = Program(
    "etcd",
    "go.etcd.io/etcd/server/v3",
    "v3.7.3",
    "go.etcd.io/etcd/server/v3",
    # Its go.mod has relative paths to neighbouring modules, which apply only in its own repository.
    requires={f"go.etcd.io/etcd/{part}/v3": "v3.7.3" for part in ("api", "client/pkg", "client")},
)
KUBERNETES = Program(
    "kubernetes",
    "k8s.io/kubernetes",
    KUBERNETES_VERSION,
    "sources/kubernetes",
    staging=KUBERNETES_VERSION.replace("v1.", "v0.", 1),
    variables=_kubernetes_variables(KUBERNETES_VERSION),
    called=("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
)
KWOK = Program("kwok", "sigs.k8s.io/kwok", "v0.8.0", "sigs.k8s.io/kwok/cmd/kwok")
KARPENTER = Program(
    "karpenter",
    "github.com/aws/karpenter-provider-aws",
    KARPENTER_VERSION,
    # The provider's test program: its real code for instance types, prices, images and subnets, with an
    # emulated EC2 API and KWOK nodes as instances.
    "github.com/aws/karpenter-provider-aws/kwok",
    # The module requires v1.15.1 of the core, whose archive the module proxy refuses (2026-11-22). Between
    # v1.15.0 and v1.15.1 of this module, only the required core and release scripts differ.
    replaces={
        "sigs.k8s.io/karpenter": "v1.15.0",
        # It declares an interface of this service, which nothing here calls.
        "github.com/aws/aws-sdk-go-v2/service/timestreamwrite": "v1.36.2",
    },
)
LEADER_WORKER_SET = Program("lws", "sigs.k8s.io/lws", LWS_VERSION, "sigs.k8s.io/lws/cmd")
KUEUE = Program(
    "kueue",
    "sigs.k8s.io/kueue",
    KUEUE_VERSION,
    "sigs.k8s.io/kueue/cmd/kueue",
    # Only root may write to the original folder. This one is below the working directory.
    rewrites={"main.go": ('"/etc/kueue/metrics/certs"', '"kueue"')},
)
#: KEDA's go.mod replaces these modules. Such replacements apply only in its own repository.
_KEDA_REPLACEMENTS = {
    "github.com/google/cel-go": "v0.26.0",
    "github.com/prometheus/client_golang": "v1.23.2",
    "github.com/prometheus/client_model": "v0.6.2",
    "github.com/prometheus/common": "v0.66.1",
    "github.com/prometheus/prometheus": "v0.304.2",
    "k8s.io/api": "v0.35.5",
    "k8s.io/apiextensions-apiserver": "v0.35.5",
    "k8s.io/apimachinery": "v0.35.5",
    "k8s.io/apiserver": "v0.35.5",
    "k8s.io/client-go": "v0.35.5",
    "k8s.io/code-generator": "v0.35.5",
    "k8s.io/component-base": "v0.35.5",
    "k8s.io/gengo/v2": "v2.0.0-20250922181213-ec3ebc5fd46b",
    "k8s.io/kube-openapi": "v0.0.0-20250910181357-589584f1c912",
    "k8s.io/metrics": "v0.35.5",
    "sigs.k8s.io/controller-runtime": "v0.23.3",
}
KEDA_OPERATOR = Program(
    "keda-operator",
    "github.com/kedacore/keda/v2",
    KEDA_VERSION,
    "github.com/kedacore/keda/v2/cmd/operator",
    replaces=_KEDA_REPLACEMENTS,
)
KEDA_METRICS_ADAPTER = Program(
    "keda-adapter",
    "github.com/kedacore/keda/v2",
    KEDA_VERSION,
    "github.com/kedacore/keda/v2/cmd/adapter",
    replaces=_KEDA_REPLACEMENTS,
    # The address of its own metrics is every address of the machine, and no flag changes that.
    rewrites={"main.go": ('Sprintf(":%v"', 'Sprintf("127.0.0.1:%v"')},
)

#: Not a part of the control plane. Tests of queries and the local run of scaling build it when they need it.
PROMETHEUS = Program(
    "prometheus", "github.com/prometheus/prometheus", PROMETHEUS_VERSION, "sources/prometheus"
)

PROGRAMS = (ETCD, KUBERNETES, KWOK, KARPENTER, LEADER_WORKER_SET, KUEUE)
#: Built on demand, by the comparison of scaling decisions alone: together more work than all of PROGRAMS.
KEDA_PROGRAMS = (KEDA_OPERATOR, KEDA_METRICS_ADAPTER)

KWOK_STAGES = ModuleFiles(
    "kwok-stages", "sigs.k8s.io/kwok", "v0.8.0", ("kustomize/stage/**/*.yaml", "kustomize/crd/**/*.yaml")
)
LEADER_WORKER_SET_WEBHOOKS = ModuleFiles(
    "lws-webhooks", "sigs.k8s.io/lws", LWS_VERSION, ("config/webhook/manifests.yaml",)
)
KARPENTER_EXAMPLES = ModuleFiles(
    "karpenter-examples",
    "github.com/aws/karpenter-provider-aws",
    KARPENTER_VERSION,
    ("examples/v1/general-purpose.yaml",),
)
#: What its node repair acts on, in source: `tests/cluster/test_repair_policies.py` reads it.
KARPENTER_REPAIR = ModuleFiles(
    "karpenter-repair",
    "github.com/aws/karpenter-provider-aws",
    KARPENTER_VERSION,
    ("pkg/cloudprovider/cloudprovider.go",),
)
CUSTOM_RESOURCES = (
    ModuleFiles(
        "karpenter-crds",
        "github.com/aws/karpenter-provider-aws",
        KARPENTER_VERSION,
        ("pkg/apis/crds/karp*.yaml",),
    ),
    ModuleFiles("lws-crds", "sigs.k8s.io/lws", LWS_VERSION, ("config/crd/bases/leaderworkerset*.yaml",)),
    ModuleFiles(
        "keda-crds", "github.com/kedacore/keda/v2", KEDA_VERSION, ("config/crd/bases/*keda.sh_*.yaml",)
    ),
    ModuleFiles("kueue-crds", "sigs.k8s.io/kueue", KUEUE_VERSION, ("config/components/crd/bases/*.yaml",)),
    ModuleFiles(
        "inference-extension-crds",
        "sigs.k8s.io/gateway-api-inference-extension",
        INFERENCE_EXTENSION_VERSION,
        ("config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",),
    ),
    ModuleFiles(
        "load-balancer-controller-crds",
        "github.com/kubernetes-sigs/aws-load-balancer-controller",
        LOAD_BALANCER_CONTROLLER_VERSION,
        ("config/crd/bases/elbv2*.yaml",),
    ),
)
CHARTS = (
    ModuleFiles(
        "karpenter-chart",
        "github.com/aws/karpenter-provider-aws",
        KARPENTER_VERSION,
        ("charts/karpenter/**/*",),
    ),
    ModuleFiles("kueue-chart", "sigs.k8s.io/kueue", KUEUE_VERSION, ("charts/kueue/**/*",)),
    ModuleFiles("lws-chart", "sigs.k8s.io/lws", LWS_VERSION, ("charts/lws/**/*",)),
)


def modules() -> Mapping[str, str]:
    """Return every pinned Go module and its version."""
    karpenter = (KARPENTER_EXAMPLES, KARPENTER_REPAIR)
    files = (KWOK_STAGES, LEADER_WORKER_SET_WEBHOOKS, *karpenter, *CUSTOM_RESOURCES, *CHARTS)
    programs = (*PROGRAMS, PROMETHEUS, *KEDA_PROGRAMS)
    found = {row.module: row.version for row in (*programs, *files)}
    for row in programs:
        found |= {**row.requires, **row.replaces}
    return found
