"""A chart at the version with which this release was tested, in a cluster of another stack."""

import aws_cdk as cdk

from inference_catalog.charts import charts
from inference_constructs.eks import KubectlAccess
from inference_constructs.helm import HelmRelease

app = cdk.App()
stack = cdk.Stack(app, "Charts", env=cdk.Environment(account="111122223333", region="us-west-2"))

# In the stack of the cluster: access = KubectlAccess.from_cluster(cluster, cluster_name="search")
access = KubectlAccess(
    cluster_name="search",
    service_token="arn:aws:lambda:us-west-2:111122223333:function:kubectl",
    handler_role_arn="arn:aws:iam::111122223333:role/kubectl",
)
HelmRelease(
    stack,
    "Kueue",
    cluster=access.import_cluster(stack),
    chart=charts()["kueue"],
    values={"enableKueueViz": False},
    create_namespace=True,
    wait=True,
)

app.synth()
