"""Checks that the cluster's API server can be reached, and that the user has access."""

from __future__ import annotations

from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.kubernetes.cluster_connection import describe
from inference_blueprints.operate.kubernetes.kubectl import KubectlFailed
from inference_blueprints.operate.verify.verified_platform import ClusterReader, VerifiedPlatform
from inference_catalog.charts import charts

CHECK = "API server"
#: Maximum time for an answer.
_PATIENCE = "--request-timeout=10s"
_POLICIES = "arn:aws:eks::aws:cluster-access-policy"
_STRANGER = ("Unauthorized", "logged in", "provide credentials")
_ASSUMED = ":assumed-role/"


def look_in(platform: VerifiedPlatform, kubectl: ClusterReader) -> CheckResult:
    """Check access to the API server with a simple request.

    kubectl: Client of the cluster with the user's permissions.
    Returns: ``ok``, or an error with the missing access entry or permissions, or with where to run the
        command.
    """
    try:
        kubectl.run("get", "namespaces", _PATIENCE, "--output", "name")
    except KubectlFailed as failure:
        return _closed(platform, " ".join(str(failure).split()))
    return CheckResult(CHECK, "ok", f"reachable, and {_identity(platform)} has access")


def _closed(platform: VerifiedPlatform, words: str) -> CheckResult:
    """Return the reason why there is no access."""
    identity = _identity(platform)
    if any(word in words for word in _STRANGER):
        message = f"{identity} has no access entry in the cluster {platform.name}"
        return CheckResult(
            CHECK, "error", message, f"{_entry(platform, identity)} && {_rights(platform, identity)}"
        )
    if "forbidden" in words.lower():
        message = f"{identity} has no permission to read the cluster {platform.name}: {words}"
        return CheckResult(CHECK, "error", message, _rights(platform, identity))
    access = describe(platform.account, platform.name)["resourcesVpcConfig"]
    if access.get("endpointPublicAccess"):
        return CheckResult(CHECK, "error", f"it cannot be reached from here: {words}")
    message = (
        f"it is private and cannot be reached from here ({words}); run this within the VPC or over a "
        "VPN to it, or set endpointAccess: publicAndPrivate and deploy"
    )
    return CheckResult(CHECK, "error", message)


def _identity(platform: VerifiedPlatform) -> str:
    return str(platform.account.client("sts").get_caller_identity()["Arn"])


def _entry(platform: VerifiedPlatform, identity: str) -> str:
    """Return the command that creates the user's access entry."""
    return _eks(platform, f"create-access-entry --principal-arn {_principal(identity)}")


def _rights(platform: VerifiedPlatform, identity: str) -> str:
    """Return the commands that let the user read everything, and forward ports of the models' pods."""
    principal = _principal(identity)
    namespaces = sorted({release.namespace for release in platform.assembly.releases.values()})
    models = [name for name in namespaces if name == charts()["dynamo-model"].namespace]
    scopes = {
        "AmazonEKSAdminViewPolicy": "type=cluster",
        "AmazonEKSEditPolicy": f"type=namespace,namespaces={','.join(models)}",
    }
    return " && ".join(
        _eks(
            platform,
            f"associate-access-policy --principal-arn {principal} "
            f"--policy-arn {_POLICIES}/{policy} --access-scope {scope}",
        )
        for policy, scope in scopes.items()
    )


def _principal(identity: str) -> str:
    """Return the principal of an access entry: for a session its role, whose path only IAM has."""
    if _ASSUMED not in identity:
        return identity
    role = identity.partition(_ASSUMED)[2].partition("/")[0]
    return f"$(aws iam get-role --role-name {role} --query Role.Arn --output text)"


def _eks(platform: VerifiedPlatform, words: str) -> str:
    return platform.aws(f"eks {words} --cluster-name {platform.name}")
