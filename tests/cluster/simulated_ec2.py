"""EC2 as moto answers it, on loopback, with what Karpenter asks for and moto does not know."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

import inference_catalog as catalog

REGION = "us-west-2"
CLUSTER_NAME = "cluster"
#: Taken by moto for any account.
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
_ROLE = "KarpenterNodeRole"
_JSON = "application/x-amz-json-1.1"


@dataclass(frozen=True)
class SimulatedEc2:
    """Where it listens, and what stands for the AWS resources that manifests name."""

    endpoint_url: str
    identifiers: dict[str, str]
    subnet_ids: tuple[str, ...]


class _SilentHandler(WSGIRequestHandler):
    """Writes no line a request."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Pass over what was asked."""


@contextmanager
def simulated_ec2() -> Iterator[SimulatedEc2]:
    """An EC2 with a VPC, a node role and the platform's images."""
    moto = DomainDispatcherApplication(create_backend_app)
    images: dict[str, str] = {}
    # The images' parameters are AWS's own, which nobody may write; prices are not in moto.
    answers: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
        "AmazonSSM.GetParameter": lambda request: _image_parameter(request["Name"], images),
        "AWSPriceListService.GetProducts": lambda _: {"FormatVersion": "aws_v1", "PriceList": _prices()},
    }

    def application(environment: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answer = answers.get(environment.get("HTTP_X_AMZ_TARGET", ""))
        if answer is not None:
            asked = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
            if (content := answer(json.loads(asked))) is not None:
                body = json.dumps(content).encode()
                start_response("200 OK", [("Content-Type", _JSON), ("Content-Length", str(len(body)))])
                return [body]
            environment["wsgi.input"] = io.BytesIO(asked)
        response: Iterable[bytes] = moto(environment, start_response)
        return response

    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=_SilentHandler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_port}"
        yield _furnish(endpoint, images)
    finally:
        server.shutdown()
        thread.join()


def _furnish(endpoint: str, images: dict[str, str]) -> SimulatedEc2:
    def client(service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        )

    ec2 = client("ec2")
    for architecture in ("x86_64", "arm64"):
        filters = [{"Name": "architecture", "Values": [architecture]}]
        found = ec2.describe_images(Filters=filters)["Images"]
        images[architecture] = next(each["ImageId"] for each in found if each.get("Platform") != "windows")
        # Karpenter tells variants apart by their image, so none may stand for two.
        images[f"{architecture} nvidia"] = ec2.copy_image(
            Name=f"{architecture}-nvidia", SourceImageId=images[architecture], SourceRegion=REGION
        )["ImageId"]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    # Between them the two zones offer every type of the matrix, as moto has them.
    subnets = tuple(
        ec2.create_subnet(
            VpcId=vpc, CidrBlock=f"10.0.{64 * number}.0/18", AvailabilityZone=f"{REGION}{zone}"
        )["Subnet"]["SubnetId"]
        for number, zone in enumerate("ac")
    )
    group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    client("iam").create_role(RoleName=_ROLE, AssumeRolePolicyDocument="{}")
    # Karpenter asks it for the range of service addresses.
    client("eks").create_cluster(
        name=CLUSTER_NAME,
        roleArn=f"arn:aws:iam::123456789012:role/{_ROLE}",
        resourcesVpcConfig={"subnetIds": list(subnets)},
        kubernetesNetworkConfig={"serviceIpv4Cidr": "10.96.0.0/16"},
    )
    identifiers = {"AWS::EKS::Cluster": group, "AWS::EC2::SecurityGroup": group, "AWS::IAM::Role": _ROLE}
    return SimulatedEc2(endpoint, identifiers, subnets)


def _image_parameter(name: str, images: dict[str, str]) -> dict[str, Any] | None:
    """Answer for the names of Bottlerocket's images, and of AL2023's for NVIDIA GPUs; not for others.

    They are such as ``/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.66.0/image_id`` and
    ``/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/NAME/image_id``.
    """
    if not name.startswith("/aws/service/"):
        return None
    architecture = next(part for part in name.split("/") if part in {"x86_64", "arm64"})
    image = f"{architecture} nvidia" if "nvidia" in name else architecture
    return {"Parameter": {"Name": name, "Type": "String", "Value": images[image], "Version": 1}}


def _prices() -> list[str]:
    return [
        json.dumps(
            {
                "product": {"attributes": {"instanceType": name}},
                "terms": {
                    "OnDemand": {"term": {"priceDimensions": {"price": {"pricePerUnit": {"USD": str(usd)}}}}}
                },
            }
        )
        for name, usd in catalog.prices().usd_per_hour.items()
    ]
