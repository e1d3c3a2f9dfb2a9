"""An alarm on a series of Prometheus, who is told of it, and a dashboard that shows both."""

import aws_cdk as cdk

from inference_constructs.observability import (
    AlarmQuery,
    AlarmTopic,
    MetricDashboard,
    PromqlAlarms,
    QueryPanel,
)

app = cdk.App()
stack = cdk.Stack(app, "Monitoring", env=cdk.Environment(account="111122223333", region="us-west-2"))

WAITING = 'sum by (model) (vllm:num_requests_waiting{cluster="search"})'
alarms = PromqlAlarms(
    stack,
    "Alarms",
    queries=[
        AlarmQuery(
            name="search-requests-waiting",
            query=f"{WAITING} > 50",
            says="More than 50 requests wait for a worker.",
            runbook="https://example.com/runbooks/requests-waiting",
        )
    ],
    alarm_topic=AlarmTopic(stack, "People", emails=["on-call@example.com"]).alarm_topic,
)
MetricDashboard(
    stack,
    "Dashboard",
    text="# Models\nRequests that wait for a worker.",
    alarms=list(alarms.alarms.values()),
    queries=[QueryPanel(title="Requests waiting", queries=[WAITING])],
)

app.synth()
