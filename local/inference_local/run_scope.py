"""Which parts of a platform a run on this machine has, and the steps that follow from that."""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import Blueprint
from inference_contracts.operations_names import CONTROLLERS
from inference_local.run_steps import CONTROL_PLANE, EMULATOR, FRONT_DOOR, STACKS, TEMPLATES
from inference_local.serving.engine_kind import EngineKind


@dataclass(frozen=True, slots=True)
class RunScope:
    """What of a blueprint runs here. Nothing has to be started to know it."""

    blueprint: Blueprint
    plan: ServingPlan
    engines: EngineKind
    control_plane: bool
    """Whether the EKS cluster is a real Kubernetes API server with fake nodes."""

    @property
    def serving_title(self) -> str:
        """What the step does that starts the engines."""
        return f"Start the router and {self.engines.title}"

    @property
    def step_titles(self) -> tuple[str, ...]:
        """What the steps of `LocalPlatform.serve` and `deploy` do."""
        prepares = [self.engines.preparation] if self.engines.preparation else []
        builds = [CONTROL_PLANE] if self.control_plane else []
        doors = [FRONT_DOOR] if self.has_front_door else []
        return (*prepares, self.serving_title, *builds, TEMPLATES, EMULATOR, STACKS, *doors)

    @property
    def has_front_door(self) -> bool:
        """Whether callers come through a front door."""
        return self.plan.front_door is not None

    @property
    def has_callers(self) -> bool:
        """Whether callers of the front door can be tried here: this machine signs no tokens."""
        door = self.plan.front_door
        return door is not None and door.configuration.api_keys

    @property
    def runs_batch(self) -> bool:
        """Whether batch workers run: with a control plane, no chart that requests them is recorded."""
        return self.blueprint.spec.batch is not None and not self.control_plane

    @property
    def is_elastic(self) -> bool:
        """Whether some workers follow the load here: KEDA's decisions can be made here, those of ECS not."""
        on_eks = bool(self.blueprint.spec.cluster.eks)
        return on_eks and self.engines.elastic_load is not None and self.plan.is_elastic

    @property
    def is_controlled(self) -> bool:
        """Whether GPU health and the capacity shift run beside the load."""
        spec = self.blueprint.spec
        # Their stand-in for the cluster knows no pool that models share.
        controlled = len(controllers_of(spec)) == len(CONTROLLERS) and not self._shares_pools
        return controlled and self.is_elastic and self.runs_batch

    @property
    def lends(self) -> bool:
        """Whether workers of batch on a shared pool come and go here: the shift decides in this process."""
        shift = self.blueprint.spec.capacity_shift
        acts = shift is not None and shift.action == "shift" and self._shares_pools
        return acts and self.is_elastic and self.runs_batch and self.engines.elastic_load == "replay"

    @property
    def _shares_pools(self) -> bool:
        return any(each.shared is not None for each in self.blueprint.spec.pools)
