"""Write the tables of docs/ecs.md: EKS and ECS row by row, and what ECS refuses.

The second table is the list that ``validate`` uses. ``make generate`` runs this script.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from generated_files import fill_section, rewrite

from inference_blueprints.render.ecs.ecs_limits import ECS_LIMITS
from inference_blueprints.spec.section import Section
from inference_blueprints.spec.types import Spec

PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "ecs.md"
#: Key of the blueprint: what it is on EKS, and on ECS.
ROWS: Final = {
    "environment": ("the same", "the same"),
    "network": (
        "target groups that the load balancer controller fills",
        "the same load balancer, names and certificates; ECS registers the tasks",
    ),
    "cluster": ("control plane, system nodes, add-ons", "a cluster without a price; etcd for discovery"),
    "pools": (
        "Karpenter: a NodePool and an EC2NodeClass per pool",
        "a capacity provider per pool: Managed Instances or an Auto Scaling group",
    ),
    "queueing": ("Kueue", "refused"),
    "models": ("a Helm release per deployment", "a service and a task definition per process"),
    "frontDoor": (
        "pods beside the models; configuration from a ConfigMap",
        "tasks on Fargate; configuration from a versioned object of S3",
    ),
    "batch": ("pods on system nodes, or tasks on Fargate", "tasks on Fargate"),
    "teams": ("the same", "the same"),
    "signalStore": ("the same", "the same"),
    "kafka": ("the same", "the same"),
    "streaming": ("the same", "the same; jobs call the model by its name"),
    "observability": (
        "the CloudWatch add-on, Prometheus, the exporter of GPU metrics",
        "Prometheus on Fargate with the same recorded series, an agent beside it that receives traces, "
        "a task per host for GPU metrics",
    ),
    "gpuHealth": (
        "node conditions and GPU metrics; Karpenter replaces nodes",
        "GPU metrics; ECS drains a host and its Auto Scaling group replaces it; ECS itself repairs Managed "
        "Instances",
    ),
    "capacityShift": (
        "floors of KEDA, quotas of Kueue, places of batch",
        "floors of Application Auto Scaling, on shared pools also maxima and desired counts, places of batch",
    ),
}


def page_text(page: str) -> str:
    """Return the page with new tables."""
    for name, lines in (("rows", _rows()), ("limits", _limits())):
        page = fill_section(page, name, "\n".join(lines))
    return page


def _rows() -> Iterator[str]:
    """Yield a row for every key of the blueprint, in the order of the reference."""
    yield "| Section | EKS | ECS |"
    yield "|---|---|---|"
    for key in section_keys(Spec):
        on_eks, on_ecs = ROWS[key]
        yield f"| `{key}` | {on_eks} | {on_ecs} |"


def section_keys(section: type[Section]) -> list[str]:
    """Return the keys of a section as a file spells them."""
    return [field.alias or name for name, field in section.model_fields.items()]


def _limits() -> Iterator[str]:
    yield "| Setting | Result | Reason | Do instead |"
    yield "|---|---|---|---|"
    for limit in ECS_LIMITS:
        result = "refused" if limit.severity == "error" else "differs"
        yield f"| {limit.setting} | {result} | {limit.reason} | {limit.instead} |"


def main() -> None:
    """Write the page."""
    rewrite(PAGE, page_text)


if __name__ == "__main__":
    main()
