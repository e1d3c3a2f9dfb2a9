"""Lets Helm overwrite fields of its charts that somebody else has set.

Helm 4 applies charts on the server. If a field of a chart was set by somebody else in the meantime, such as a
person with ``kubectl scale`` or a controller, the API server refuses the whole upgrade, and CloudFormation
cannot roll it back either: the former values conflict as well (k3s-io/helm-controller#343, NVIDIA/aicr#934,
kedacore/keda#7306). ``--force-conflicts`` gives the field back to the chart
(https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts), and Helm accepts it only with
``--server-side=true`` (helm/helm, pkg/kube/client.go: "forceConflicts enabled when serverSideApply
disabled"). CDK's handler passes neither (aws-cdk-lib 2.275.0, custom-resource-handlers,
aws-eks-v2/kubectl-handler/helm).

So a layer brings a program `helm` that adds both options. CDK's handler finds it first: its modules put
``/opt/kubectl`` before ``/opt/helm`` in the path.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import aws_cdk as cdk
import jsii
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

#: Place of Helm in the layer of CDK, as Lambda unpacks it.
LAYER_HELM: Final = "/opt/helm/helm"
#: Place of the program in its own layer.
PROGRAM_PATH: Final = "kubectl/helm"
#: The program.
PROGRAM: Final = f"""\
#!/bin/sh
case "$1" in
  upgrade) set -- "$@" --server-side=true --force-conflicts ;;
esac
exec {LAYER_HELM} "$@"
"""


@jsii.implements(cdk.ILocalBundling)
class _Writing:
    """Writes the program into the layer."""

    def try_bundle(self, output_dir: str, *, image: Any, **_: Any) -> bool:  # noqa: ARG002 - jsii's
        """Write the program into the folder."""
        program = Path(output_dir, PROGRAM_PATH)
        program.parent.mkdir()
        program.write_text(PROGRAM, "utf-8")
        program.chmod(0o755)
        return True


class ForcingHelm(lambda_.LayerVersion):
    """A layer for CDK's kubectl handler, with which Helm overwrites what others set in fields of a chart."""

    def __init__(self, scope: Construct, construct_id: str) -> None:
        super().__init__(
            scope,
            construct_id,
            code=lambda_.Code.from_asset(
                str(Path(__file__).parent),
                asset_hash_type=cdk.AssetHashType.OUTPUT,
                bundling=cdk.BundlingOptions(
                    # CDK requires an image but never pulls it: `try_bundle` writes the file.
                    image=cdk.DockerImage.from_registry("none"),
                    local=_Writing(),
                ),
            ),
            description="helm upgrade --force-conflicts",
        )
