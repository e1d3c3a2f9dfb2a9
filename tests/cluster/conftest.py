"""One control plane for all tests of a run, and the platforms that they deploy to it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache

import pytest
import yaml
from capacity_shift.cluster_numbers import KubernetesNumbers

import app
from inference_blueprints.folder_lock import folder_lock
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.render.eks.front_door_values import DOOR_NAMESPACE
from inference_blueprints.spec.source import shipped
from inference_contracts.operations_names import HEALTH_GROUP, SHIFT_GROUP
from inference_local.control_plane import definitions
from inference_local.control_plane.control_plane import ControlPlane
from operations.kubernetes_api import KubernetesApi
from tests.cluster import matrix
from tests.cluster.group_tokens import GroupTokens
from tests.cluster.state import namespace_object
from tests.templates.support import Templates

_ON_EKS = [name for name in sorted(shipped()) if load_blueprint(name).blueprint.spec.cluster.eks]
_PLATFORMS = [*_ON_EKS, matrix.NAME]
#: No assets are copied to the cloud assembly.
_CONTEXT = {"aws:cdk:disable-asset-staging": True}


@pytest.fixture(scope="session")
def group_tokens(tmp_path_factory: pytest.TempPathFactory) -> GroupTokens:
    """Tokens of the groups of the platform's controllers."""
    return GroupTokens(tmp_path_factory.mktemp("tokens") / "tokens.csv", (HEALTH_GROUP, SHIFT_GROUP))


@pytest.fixture(scope="session")
def control_plane(
    tmp_path_factory: pytest.TempPathFactory, group_tokens: GroupTokens
) -> Iterator[ControlPlane]:
    """A control plane with every custom resource definition and the namespaces of a platform."""
    folder = tmp_path_factory.mktemp("control-plane")
    with ControlPlane(folder, report=print, api_server_flags=group_tokens.flags) as plane:
        definitions.install(plane.kubectl, print)
        names = ("inference", "dynamo-system", "kueue-system", DOOR_NAMESPACE)
        plane.kubectl.apply([namespace_object(name) for name in names])
        yield plane


@pytest.fixture(scope="session", autouse=True)
def quick_synthesis() -> Iterator[None]:
    """Do not check templates against CloudFormation's rules again: `tests/templates` does so."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CDK_VALIDATION", "false")
        yield


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """A client with administrator permissions."""
    return control_plane.kubectl


@pytest.fixture
def namespace(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[str]:
    """A namespace for one test. It is deleted with its objects."""
    name = f"test-{abs(hash(request.node.nodeid)):x}"
    kubectl.apply([namespace_object(name)])
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture
def numbers(control_plane: ControlPlane, kubectl: Kubectl, namespace: str) -> Iterator[KubernetesNumbers]:
    """The numbers of the cluster as the capacity shift sets them."""
    kubectl.run("create", "serviceaccount", "shift", "--namespace", namespace)
    subject = f"--serviceaccount={namespace}:shift"
    kubectl.run("create", "clusterrolebinding", namespace, "--clusterrole=cluster-admin", subject)
    token = kubectl.run("create", "token", "shift", "--namespace", namespace).strip()
    authority = control_plane.authority.certificate.read_text()
    yield KubernetesNumbers(KubernetesApi(control_plane.address, lambda: token, authority=authority))
    kubectl.run("delete", "clusterrolebinding", namespace)


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Templates]:
    """Synthesise a shipped blueprint, or that with every kind of pool, once for all processes of a run."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent  # that of the run, which has a folder for each process

    @cache
    def build(name: str) -> Templates:
        folder = shared / f"platform-{name}"
        outdir, finished = folder / "cdk.out", folder / "finished"
        with folder_lock(folder):
            if not finished.exists():
                path = shipped().get(name)
                if path is None:
                    path = folder / "blueprint.yaml"
                    path.write_text(yaml.safe_dump(matrix.document()))
                loaded = load_blueprint(str(path))
                app.synthesise(app.build_app(loaded, outdir=outdir, context=_CONTEXT))
                finished.touch()
        return Templates(outdir)

    return build


@pytest.fixture(scope="session")
def platforms(synthesise: Callable[[str], Templates]) -> dict[str, Templates]:
    """Templates of all shipped blueprints on EKS and of the one with every kind of pool, by name."""
    # From the end: another process of the run begins with the first one.
    return {name: synthesise(name) for name in reversed(_PLATFORMS)}


@pytest.fixture(scope="session", params=_PLATFORMS)
def platform(request: pytest.FixtureRequest, synthesise: Callable[[str], Templates]) -> Templates:
    """Templates of each shipped blueprint on EKS, and of the one with every kind of pool."""
    return synthesise(request.param)


@pytest.fixture(scope="session")
def matrix_platform(synthesise: Callable[[str], Templates]) -> Templates:
    """Templates of the blueprint with every kind of pool."""
    return synthesise(matrix.NAME)
