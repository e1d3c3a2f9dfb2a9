"""One control plane for all tests of a run, and the platforms that they put on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache

import pytest
import yaml

import app
from inference_blueprints.deployment.kubectl import Kubectl
from inference_blueprints.loading import load_blueprint
from inference_blueprints.local.control_plane import definitions
from inference_blueprints.local.control_plane.control_plane import ControlPlane
from inference_blueprints.spec.shipped import shipped
from tests.cluster import matrix
from tests.cluster.objects import KubernetesObject, manifests
from tests.templates.support import Templates

#: Nothing is copied into the cloud assembly.
_CONTEXT = {"aws:cdk:disable-asset-staging": True}
_MATRIX = "every-kind-of-pool"


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with every custom resource definition and the namespaces of a platform."""
    with ControlPlane(tmp_path_factory.mktemp("control-plane"), report=print) as plane:
        definitions.install(plane.kubectl, print)
        plane.kubectl.apply([_namespace(name) for name in ("inference", "dynamo-system", "kueue-system")])
        yield plane


@pytest.fixture(scope="session")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """A client that may do everything."""
    return control_plane.kubectl


@pytest.fixture
def namespace(request: pytest.FixtureRequest, kubectl: Kubectl) -> Iterator[str]:
    """A namespace for one test; what is in it goes with it."""
    name = f"test-{abs(hash(request.node.nodeid)):x}"
    kubectl.apply([_namespace(name)])
    yield name
    kubectl.run("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="session")
def synthesise(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Templates]:
    """Synthesise a shipped blueprint, or the one of every kind of pool, once."""

    @cache
    def build(name: str) -> Templates:
        folder = tmp_path_factory.mktemp(name)
        path = shipped().get(name)
        if path is None:
            path = folder / "blueprint.yaml"
            path.write_text(yaml.safe_dump(matrix.document()))
        outdir = folder / "cdk.out"
        app.synthesise(app.build_app(load_blueprint(str(path)), outdir=outdir, context=_CONTEXT))
        return Templates(outdir)

    return build


@pytest.fixture(scope="session", params=[*sorted(shipped()), _MATRIX])
def platform(request: pytest.FixtureRequest, synthesise: Callable[[str], Templates]) -> Templates:
    """Templates of each shipped blueprint, and of one that has every kind of pool."""
    return synthesise(request.param)


@pytest.fixture(scope="session")
def matrix_platform(synthesise: Callable[[str], Templates]) -> Templates:
    """Templates of the blueprint that has every kind of pool."""
    return synthesise(_MATRIX)


@pytest.fixture(scope="session")
def platform_manifests(platform: Templates) -> list[KubernetesObject]:
    """What the platform's stacks apply themselves."""
    return manifests(platform)


def _namespace(name: str) -> KubernetesObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
