"""Deploys the stacks of a blueprint on ECS to the emulator, whose agent runs the rendered tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.serving.resolved import shape_of
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.derived import models_domain
from inference_blueprints.synthesis import synthesise
from inference_contracts.errors import UserError
from inference_local.ecs_platform import model_hub
from inference_local.ecs_platform.image_table import task_images
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import bootstrap, deploy
from inference_local.processes.child_processes import Programs
from inference_local.serving.isolation import Isolation, open_isolation, started_in


class EcsPlatform(Programs):
    """A platform whose tasks run in a network namespace. Use it as a context manager.

    At its start it is synthesised and deployed; CloudFormation waits until every service is steady.

    run_directory: Empty folder for templates, logs and files of tasks.
    report: Called with a line of progress.
    task_speed: How much faster than time the control plane of ECS, health checks and alarms wait.
    Raises UserError at the start, if this machine allows no network namespace, or the app cannot be
        synthesised or deployed.
    """

    def __init__(
        self,
        loaded: LoadedBlueprint,
        plan: ServingPlan,
        run_directory: Path,
        *,
        report: Callable[[str], None],
        task_speed: float = 4.0,
    ) -> None:
        super().__init__(grace_seconds=5)
        self._loaded = loaded
        self._plan = plan
        self._directory = run_directory.resolve()
        self._report = report
        self._speed = task_speed
        self._emulator: Emulator | None = None

    def stop(self) -> None:
        """End the emulator with all tasks, and then the network."""
        if self._emulator is not None:
            self._emulator.stop()
        super().stop()

    @property
    def emulator(self) -> Emulator:
        """The emulator, once the platform has started."""
        if self._emulator is None:
            raise RuntimeError("the platform has not started")
        return self._emulator

    @property
    def assembly(self) -> Path:
        """Folder of the templates."""
        return self._directory / "cdk.out"

    @property
    def cluster(self) -> str:
        """Name of the ECS cluster."""
        return self._loaded.blueprint.metadata.name

    def _start(self) -> None:
        isolation = open_isolation(started_in(self._processes, self._directory / "network.log"), as_root=True)
        if isolation.holder is None:
            raise UserError(
                f"tasks need a network namespace, and this machine allows none: {isolation.reason}"
            )
        images = task_images(self._loaded, self._plan, self._directory / "images", self._report)
        self._report("write the templates")
        synthesise(self._loaded.file, self.assembly)
        emulator = self._emulator = Emulator(
            self._directory / "emulator",
            region=self._loaded.blueprint.spec.environment.region,
            task_images=images,
            task_speed=self._speed,
            alarm_speed=self._speed,
            isolation=isolation,
            build_variables=self._start_hub(isolation),
        ).__enter__()
        self._report("deploy")
        bootstrap(emulator, log_path=self._directory / "bootstrap.log", on_line=lambda _: None)
        deploy(
            emulator,
            self.assembly,
            log_path=self._directory / "deploy.log",
            on_line=lambda _: None,
            on_event=lambda event: self._report(f"{event.stack}: {event.resource} {event.status}"),
        )

    def _start_hub(self, isolation: Isolation) -> Mapping[str, str]:
        """Serve the models that a build copies, and return the variables with which builds find them."""
        folder = self._directory / "hub"
        models = self._loaded.blueprint.spec.models
        copied = [each.weights for each in models if each.weights.mirror is not None]
        for weights in copied:
            model_hub.write_repository(folder, str(weights.hugging_face), shape_of(weights))
        if not copied:
            return {}
        self._processes.start(
            "model hub",
            isolation.command([sys.executable, "-m", model_hub.__name__, folder, str(model_hub.PORT)]),
            environment={"PYTHONPATH": os.pathsep.join(sys.path)},
            log_path=self._directory / "hub.log",
        )
        return {"HF_ENDPOINT": f"http://127.0.0.1:{model_hub.PORT}"}

    def host_name(self, model: str) -> str:
        """Return the name under which the load balancer knows a model."""
        blueprint = self._loaded.blueprint
        return f"{model}.{models_domain(blueprint.metadata.name, blueprint.spec.network)}"
