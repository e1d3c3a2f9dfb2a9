"""The programs and files of the control plane, all from Go modules: one row per program or set of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

KUBERNETES_VERSION = "v1.36.3"
_KARPENTER_VERSION = "v1.14.1"
_KEDA_VERSION = "v2.20.2"
_KUEUE_VERSION = "v0.19.2"
_LWS_VERSION = "v0.9.0"


@dataclass(frozen=True)
class Program:
    """A program that is built from a Go module.

    Attributes
    ----------
    name
        File name of the program.
    module, version
        Go module and its version.
    package
        Import path of the main package, or the name of a folder below ``sources`` with a main package of
        ours.
    requires
        Further modules with a pinned version, ``{module: version}``.
    replaces
        Replacements for required versions that no module proxy has, ``{module: version}``.
    staging
        Version of every module that the module replaces by its ``./staging`` folder. Such replacements apply
        only in the module's own repository.
    variables
        Strings that the linker sets, ``{import path and name: value}``.
    rewrites
        Text of the main package that no flag or variable can change, ``{file: (old, new)}``.
    called
        Names that the program is started as, if it has several.
    """

    name: str
    module: str
    version: str
    package: str
    requires: Mapping[str, str] = field(default_factory=dict)
    replaces: Mapping[str, str] = field(default_factory=dict)
    staging: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    rewrites: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    called: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleFiles:
    """Files that are copied from a Go module.

    Attributes
    ----------
    name
        Name of the folder they are copied to.
    module, version
        Go module and its version.
    patterns
        Paths within the module as ``Path.glob`` patterns. Their folders are kept.
    """

    name: str
    module: str
    version: str
    patterns: tuple[str, ...]


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
    _KARPENTER_VERSION,
    # The provider's test program: its real code for instance types, prices, images and subnets, with an
    # emulated EC2 API and KWOK nodes as instances.
    "github.com/aws/karpenter-provider-aws/kwok",
    # The module requires a commit of the core that no module proxy has.
    replaces={"sigs.k8s.io/karpenter": _KARPENTER_VERSION},
)
LEADER_WORKER_SET = Program("lws", "sigs.k8s.io/lws", _LWS_VERSION, "sigs.k8s.io/lws/cmd")
KUEUE = Program(
    "kueue",
    "sigs.k8s.io/kueue",
    _KUEUE_VERSION,
    "sigs.k8s.io/kueue/cmd/kueue",
    # Only root may write to the original folder. This one is below the working directory.
    rewrites={"main.go": ('"/etc/kueue/metrics/certs"', '"kueue"')},
)

PROGRAMS = (ETCD, KUBERNETES, KWOK, KARPENTER, LEADER_WORKER_SET, KUEUE)

KWOK_STAGES = ModuleFiles(
    "kwok-stages", "sigs.k8s.io/kwok", "v0.8.0", ("kustomize/stage/**/*.yaml", "kustomize/crd/**/*.yaml")
)
LEADER_WORKER_SET_WEBHOOKS = ModuleFiles(
    "lws-webhooks", "sigs.k8s.io/lws", _LWS_VERSION, ("config/webhook/manifests.yaml",)
)
KARPENTER_EXAMPLES = ModuleFiles(
    "karpenter-examples",
    "github.com/aws/karpenter-provider-aws",
    _KARPENTER_VERSION,
    ("examples/v1/general-purpose.yaml",),
)
CUSTOM_RESOURCES = (
    ModuleFiles(
        "karpenter-crds",
        "github.com/aws/karpenter-provider-aws",
        _KARPENTER_VERSION,
        ("pkg/apis/crds/karp*.yaml",),
    ),
    ModuleFiles("lws-crds", "sigs.k8s.io/lws", _LWS_VERSION, ("config/crd/bases/leaderworkerset*.yaml",)),
    ModuleFiles(
        "keda-crds", "github.com/kedacore/keda/v2", _KEDA_VERSION, ("config/crd/bases/keda.sh_*.yaml",)
    ),
    ModuleFiles("kueue-crds", "sigs.k8s.io/kueue", _KUEUE_VERSION, ("config/components/crd/bases/*.yaml",)),
    ModuleFiles(
        "inference-extension-crds",
        "sigs.k8s.io/gateway-api-inference-extension",
        "v1.6.0",
        ("config/crd/bases/inference.networking.k8s.io_inferencepools.yaml",),
    ),
    ModuleFiles(
        "load-balancer-controller-crds",
        "github.com/kubernetes-sigs/aws-load-balancer-controller",
        "v0.0.0-20260423195125-93ff3b5fdaad",
        ("config/crd/bases/elbv2*.yaml",),
    ),
)
CHARTS = (
    ModuleFiles(
        "karpenter-chart",
        "github.com/aws/karpenter-provider-aws",
        _KARPENTER_VERSION,
        ("charts/karpenter/**/*",),
    ),
    ModuleFiles("kueue-chart", "sigs.k8s.io/kueue", _KUEUE_VERSION, ("charts/kueue/**/*",)),
    ModuleFiles("lws-chart", "sigs.k8s.io/lws", _LWS_VERSION, ("charts/lws/**/*",)),
)
