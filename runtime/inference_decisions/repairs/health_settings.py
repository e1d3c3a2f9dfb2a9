"""How workers are compared, and the limits of replacements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from inference_contracts.health_names import HealthAction, RepairOwner
from inference_decisions.repairs.fault_rules import FaultRules


@dataclass(frozen=True, slots=True)
class SlownessRule:
    """A worker is slow if enough of its newest windows are slow enough."""

    windows: int
    """Number of newest windows that are looked at."""
    needed: int
    """Number of them in which the worker was slow. Windows without metrics do not count."""
    slower: float
    """Least slowdown against the median of the peers, as a share: 0.2 is 20 % slower."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionSettings:
    """How workers are compared with their peers."""

    rules: tuple[SlownessRule, ...] = (
        SlownessRule(windows=3, needed=2, slower=0.20),
        SlownessRule(windows=4, needed=3, slower=0.15),
        SlownessRule(windows=10, needed=9, slower=0.10),
    )
    """A worker is slow if one of them holds. Large slowdowns are found fast; small ones need more windows."""
    score: float = 6.0
    """Least distance from the peers, in units of the spread of the peers: 1.4826 times their median absolute
    deviation, which is the standard deviation if they are spread normally. 100,000 GPUs are judged 10^8 times
    a day, so that a single false verdict a day needs more than five."""
    min_spread: float = 0.025
    """Smallest spread that is assumed, as a share of the latency. Peers that agree by chance do not make a
    difference of a few percent significant."""
    request_spread: float = 0.3
    """Spread of the latency per token between requests that is assumed, as a share: a mean over n requests is
    at least this over the square root of n uncertain."""
    small_group: float = 1.0
    """By how much the spread of a group of n is widened, as the share `small_group / n`: that of a few
    workers is a poor estimate."""
    assumed_workers: float = 4.0
    """Weight of the assumed spread beside the spread of the peers, as a number of workers."""
    min_group_size: int = 4
    """Least number of workers with metrics in a group of peers. Below it nothing is decided: among two or
    three, one odd worker and a split cannot be told apart."""
    least_requests: float = 10.0
    """Least requests of a worker in a window. With fewer, the window counts as missing."""
    bands: int = 4
    """Largest number of load bands of a group."""
    load_tolerance: float = 0.5
    """A group is cut into bands if the loads of the middle half of its workers differ by more than this share
    of the median. Narrower differences are taken out by the slope of latency over load, which a worker that
    is counted twice does not move; it would move bands."""
    max_excess_load: float = 0.4
    """A worker is compared only if its load is at most this share above the median load of its band."""
    slope_evidence: float = 0.1
    """Evidence that a slope of latency over load needs to count as half: the sum of the squared differences
    of the logarithms of the loads of peers."""
    excess_share: float = 0.05
    """Least difference to the peers in the share of requests that fail, or whose answer is empty."""
    min_failures: float = 3.0
    """Least number of failed requests of a worker in a window."""
    neighbours_moved_share: float = 0.3
    """A worker is not judged alone if at least this share of the workers on other nodes of its rack, its
    group or its pool moved as well."""
    neighbours_moved_distance: float = 1 / 3
    """How far they have to have moved to count, as a share of its own distance."""
    warm_up_seconds: float = 300.0
    """Age below which a worker is not compared: it compiles, and its prefix cache is empty."""
    window_seconds: float = 60.0
    """Length of a window."""

    @property
    def windows(self) -> int:
        """Number of windows that `detect` looks at, at most."""
        return max(rule.windows for rule in self.rules)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """The section `gpuHealth` of a blueprint, and the limits that follow from it."""

    action: HealthAction = "observe"
    """Whether nodes are replaced, or only recorded."""
    repaired_by: Mapping[str, RepairOwner] = field(default_factory=dict)
    """Owner of the repairs of each pool."""
    max_unhealthy_percent: float = 5.0
    """Nothing is replaced in a pool while more of its nodes are unhealthy."""
    replacements_per_hour: int = 4
    """Most repairs that start within an hour, in the whole cell."""
    max_repairing_percent: float = 0.0
    """Largest share of a pool's nodes that are repaired at the same time. One always may be."""
    reboots_per_node_per_day: int = 0
    """How often a node is rebooted within a day, before it is replaced. Zero if none is rebooted."""
    faults: FaultRules = field(default_factory=lambda: FaultRules({}))
    """What mends which fault."""
    slow_gpus: bool = True
    """Whether workers that are slower than their peers count, beside hardware signals."""
    confirm_seconds: float = 120.0
    """How long the evidence of a signal that is not fatal has to last before anything is done."""
    forget_seconds: float = 21600.0
    """How long a suspicion that nothing confirms is kept."""
    boot_seconds: float = 600.0
    """How long after a boot missing GPUs are normal: driver and device plugin start."""
    corrected_per_second: float = 1000.0
    """Rate of corrected memory errors that confirms that a GPU stalls DCGM."""
    stale_seconds: float = 180.0
    """Age from which a live reading is too old to act on."""
    drain_seconds: float = 900.0
    """How long requests may take to end or to move before the node is left cordoned for people."""
    replace_seconds: float = 1800.0
    """How long the owner may take to start a replacement that serves."""
    reboot_seconds: float = 1200.0
    """How long a node may take to come back from a reboot before it is replaced. Karpenter waits as long,
    "sized to cover slower instance types" (designs/reboot-node-action.md of kubernetes-sigs/karpenter)."""
    attempts: int = 5
    """How often one step may fail before the case is given up."""
    frozen: bool = False
    """Freeze switch: nothing new is started. What is under way goes on only where stopping would leave less
    capacity."""
    detection: DetectionSettings = DetectionSettings()
    """How workers are compared."""

    def places(self, nodes: int) -> int:
        """Return how many nodes of a pool may be repaired at the same time.

        nodes: Nodes of the pool.
        """
        return max(1, int(nodes * self.max_repairing_percent / 100))
