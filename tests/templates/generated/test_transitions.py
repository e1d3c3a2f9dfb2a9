"""Anything in a blueprint that may change goes over into anything else by one deployment of templates."""

from __future__ import annotations

import os
import re

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import inference_catalog as catalog
from tests.templates.checks.replaced import dangling, moved, pulled_away, replaced, retyped
from tests.templates.strategies import Document, lives
from tests.templates.synthesis import write_templates

#: A life is three templates, and the pairs of them are what counts.
EXAMPLES = int(os.environ.get("TEMPLATE_EXAMPLES", "20")) // 10

_PORT = "a certificate moves the models from port 80 to 443; the new rule is there before the old one goes"

#: What is made anew, and why nothing is lost by it.
REPLACED = {
    "AWS::Route53::HostedZone Name": "another domain is another zone; its one record is in the same stack",
    "AWS::EC2::SecurityGroupIngress SourceSecurityGroupId": (
        "batch workers that move between ECS and EKS are admitted by the new rule before the old one goes"
    ),
    "AWS::EC2::SecurityGroupIngress FromPort": _PORT,
    "AWS::EC2::SecurityGroupIngress ToPort": _PORT,
}

#: What goes with the section that it was kept for. Who still uses it is of that section too: a stack that is
#: to be pruned, or the function that publishes, which the same deployment takes away; `dataRemoval` says what
#: stays.
#: `capacityShift` needs batch, streaming needs the signal store, and KEDA is there for pods of batch that are
#: scaled: the role that trusts KEDA's goes with them. The front door and its certificates stay until they are
#: pruned, so do the keys of programs; a deployment, or Prometheus, that goes takes its certificate with
#: it, whose files it has, and a job that goes takes its key with it.
TURNED_OFF = re.compile(
    r"((FrontDoor|PlatformKeys|Batch) uses Data Door|(Batch|Streaming|Observability) uses PlatformKeys Keys"
    r"|(Model-[\w-]+|Observability) uses Certificates CallersCertificate"
    r"|Batch uses Data (Batch|Jobs|Progress|SignalHistory)"
    r"|Batch uses Platform ScalerIdentityRole|Operations uses Data Jobs|Streaming uses Data SignalHistory)\w+"
)


@pytest.mark.thorough
@pytest.mark.timeout(0)  # the number of examples bounds it
@settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    print_blob=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(life=st.sampled_from(sorted(catalog.regions())).flatmap(lambda region: lives(region, steps=3)))
def test_a_deployment_only_changes_what_it_can(
    life: list[Document], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assembled = []
    for document in life:
        folder = tmp_path_factory.mktemp("life")
        (folder / "blueprint.yaml").write_text(yaml.safe_dump(document))
        assembled.append(write_templates(folder / "blueprint.yaml", folder / "cdk.out"))
    for before in assembled:
        assert dangling(before) == []
        for after in assembled:
            assert retyped(before, after) == []
            assert moved(before, after) == []
            assert [each for each in pulled_away(before, after) if not TURNED_OFF.fullmatch(each)] == []
            anew = {f"{each.resource_type} {each.property}" for each in replaced(before, after)}
            assert anew <= REPLACED.keys()
