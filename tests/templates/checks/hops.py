"""Who may call whom: each rule of a security group belongs to a row here, and closed rows name their tests.

`docs/access.md` is written from these rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.templates.support import Templates, listed, statements, text

_DOOR: Final = "a front door that knows its callers, before the load balancer"
_MESH: Final = "TLS between processes, which neither Dynamo's nor the engines' own protocols have"


@dataclass(frozen=True, kw_only=True)
class Hop:
    """A connection that a platform makes or admits."""

    caller: str
    target: str
    port: str
    admitted: str
    """Who can connect, whether or not it is meant to."""
    authentication: str
    tls: str
    rules: tuple[str, ...] = ()
    """Patterns of `ingress`, if a security group decides."""
    tests: tuple[str, ...] = ()
    """Tests that everybody else is denied."""
    closes: str = ""
    """What would close it, if it is open: somebody can connect, or is believed, who should not be."""


HOPS: Final = (
    Hop(
        caller="applications, batch workers, streaming jobs, the canary",
        target="load balancer of the models",
        port="80, or 443 with `certificateArn`",
        admitted="the VPC, or `network.sourceCidrs`",
        authentication="none; the host name chooses the model",
        tls="with `certificateArn` only",
        rules=(
            r"Callers of the models: tcp (80|443) from ([\d./]+|Streaming jobs|the cluster"
            r"|Batch workers, to AWS and to the models|From the canary to the models)",
        ),
        closes=_DOOR,
    ),
    Hop(
        caller="load balancer",
        target="front door",
        port="8443",
        admitted="the load balancer; on EKS also each pod, which the door asks for a key or a token too",
        authentication="API key, or a token of an issuer; models and budgets by the caller's team",
        tls="yes; the load balancer does not verify the certificate of a target",
        rules=(r"(the cluster|Front door): tcp 8443 from Callers of the models",),
        tests=(
            "tests/templates/test_front_door_stack.py::test_the_load_balancer_reaches_the_door_and_the_door_the_models",
        ),
    ),
    Hop(
        caller="front door",
        target="entry points of models, on ECS",
        port="8010",
        admitted="the front door, and each task and host of the models",
        authentication="the certificate of the front door",
        tls="mutual",
        rules=(r"Hosts and tasks: tcp 8010 from Front door",),
        tests=(
            "tests/templates/test_front_door_stack.py::test_old_host_names_lead_to_the_door_and_no_target_group_goes",
        ),
    ),
    Hop(
        caller="front door",
        target="Valkey, the store of the ledger",
        port="6379",
        admitted="the front door; on EKS each pod",
        authentication="an IAM user of the front door, which changes counters of budgets alone",
        tls="yes",
        rules=(r"Store of the ledger: tcp 6379 from (Front door|the cluster)",),
        tests=(
            "tests/templates/test_front_door_stack.py::test_only_the_door_connects_to_the_store_and_its_user_may_little",
        ),
    ),
    Hop(
        caller="front door",
        target="batch API, for `/v1/files`, `/v1/uploads` and `/v1/batches`",
        port="443",
        admitted="the VPC, through the API's own endpoint",
        authentication="what the caller has sent to the door, which the API's own authorizer checks",
        tls="yes; the name of the API's endpoint, and a certificate for it",
        tests=(
            "tests/unit/render/front_door/test_batch_api.py::test_the_certificate_must_be_that_of_api_gateway_in_the_region",
            "tests/unit/render/front_door/test_envoy.py::test_files_and_batches_go_to_the_batch_api_as_they_are",
            "tests/runtime/batch/authorizer/test_authorizer.py::test_a_caller_of_no_team_is_told_so",
            "tests/runtime/batch/authorizer/test_door_keys.py::test_a_key_with_limits_is_told_why",
        ),
    ),
    Hop(
        caller="the front door, Prometheus and other callers that a deployment admits",
        target="frontends, routers and servers of `direct` behind a front door",
        port="8010",
        admitted="each pod, task and host of the platform, as far as the handshake",
        authentication="a certificate of the platform's authority with the name of an admitted caller, and "
        "the paths of that caller",
        tls="mutual",
        tests=(
            "tests/runtime/door_certificates/test_known_callers.py::test_others_do_not_get_beyond_the_handshake",
            "tests/runtime/door_certificates/test_known_callers.py::test_the_door_and_prometheus_reach_their_own_paths_only",
            "tests/charts/test_known_callers_pods.py::test_only_the_sidecar_listens_to_the_network",
            "tests/unit/render/ecs/test_caller_tasks.py::test_only_the_sidecar_listens_to_the_network",
            "tests/templates/test_known_callers_stack.py::test_each_certificate_is_read_by_its_owner_and_the_authority_by_the_build",
        ),
    ),
    Hop(
        caller="load balancer, kubelet",
        target="health checks of entry points behind a front door",
        port="8000",
        admitted="the load balancer; on EKS also each pod, on ECS also each task and host of the models",
        authentication="none: it answers the paths of the health check only",
        tls="no",
        tests=(
            "tests/runtime/door_certificates/test_known_callers.py::test_the_open_port_answers_health_checks_only",
            "tests/templates/test_known_callers_stack.py::test_the_load_balancer_reaches_no_port_for_callers",
        ),
    ),
    Hop(
        caller="load balancer, for old host names",
        target="entry points behind a front door, with `oldHostNames: {models: …}` only",
        port="8000",
        admitted="the load balancer; on EKS also each pod, on ECS also each task and host of the models",
        authentication="none, until the stated time",
        tls="no",
        closes="the stated time, after which the sidecar refuses all; or `oldHostNames: {door: {}}`",
    ),
    Hop(
        caller="load balancer",
        target="frontends, routers and servers of `direct`, behind the filter of requests",
        port="8000",
        admitted="the load balancer; on EKS also each pod, on ECS also each task and host of the models",
        authentication="none",
        tls="no",
        rules=(r"(the cluster|Hosts and tasks): tcp 8000 from Callers of the models",),
        closes=_DOOR,
    ),
    Hop(
        caller="callers of a model",
        target="paths, headers and fields behind the filter",
        port="8000",
        admitted="`/v1/…` and no choice of a worker or a priority",
        authentication="-",
        tls="-",
        tests=(
            "tests/runtime/request_filter/test_filtered_program.py::test_nothing_beyond_the_checks_reaches_the_program",
            "tests/runtime/request_filter/test_request_heads.py::test_only_paths_of_the_api_are_passed_on",
            "tests/runtime/request_filter/test_request_heads.py::test_callers_choose_no_worker_and_no_priority",
            "tests/templates/test_model_stack.py::test_only_the_api_of_a_model_is_reachable",
            "tests/charts/test_llm_d_envoy.py::test_a_caller_reaches_the_api_alone_and_nothing_without_the_picker",
        ),
    ),
    Hop(
        caller="processes of a model on EKS",
        target="its workers: requests, KV events, transfer of KV cache, stores of PyTorch and vLLM",
        port="all",
        admitted="pods of the same release; AWS promises nothing for workers that span nodes",
        authentication="none; some unpickle what they receive",
        tls="no",
        tests=(
            "tests/charts/test_network_policies.py::test_workers_behind_a_router_take_connections_of_their_release_only",
            "tests/charts/test_network_policies.py::test_servers_take_connections_on_the_ports_of_their_api_only",
        ),
    ),
    Hop(
        caller="processes of a model on ECS",
        target="its workers, as on EKS",
        port="all",
        admitted="each task and host of the platform's models",
        authentication="none; some unpickle what they receive",
        tls="no",
        rules=(r"Hosts and tasks: tcp 0-65535 from Hosts and tasks",),
        closes="a security group for each deployment, with an interface for each task; " + _MESH,
    ),
    Hop(
        caller="workers of a deployment",
        target="each other, by EFA",
        port="all",
        admitted="nodes and hosts of pools with EFA",
        authentication="none",
        tls="no",
        rules=(r"EFA between nodes: all from EFA between nodes",),
        closes="a pool of its own for each model. EFA takes whole nodes, so other pods of a node have none",
    ),
    Hop(
        caller="frontends and workers of Dynamo on ECS",
        target="etcd, the discovery store",
        port="2379",
        admitted="tasks and hosts of the models, and the task that makes users",
        authentication="a certificate for each deployment, which writes its own entries; all read all",
        tls="mutual",
        rules=(
            r"Members of the discovery store: tcp 2379 from (Hosts and tasks|Roles of the discovery store)",
        ),
        tests=(
            "tests/local/discovery/test_store.py::test_a_worker_registers_for_its_own_deployment_only",
            "tests/templates/test_discovery_stack.py::test_clients_are_the_tasks_and_hosts_of_the_cluster",
        ),
    ),
    Hop(
        caller="members of the discovery store",
        target="each other, and their files",
        port="2380, 2049 (EFS)",
        admitted="members",
        authentication="certificates of members; IAM for files",
        tls="mutual",
        rules=(
            r"Members of the discovery store: tcp 2380 from Members of the discovery store",
            r"Files of members: tcp 2049 from Members of the discovery store",
        ),
        tests=(
            "tests/templates/test_discovery_stack.py::test_files_are_encrypted_and_reached_only_by_members",
            "tests/templates/test_discovery_stack.py::test_certificates_come_from_secrets_and_only_members_read_theirs",
        ),
    ),
    Hop(
        caller="frontends and workers of Dynamo on EKS",
        target="Kubernetes API",
        port="443",
        admitted="pods",
        authentication="token of a service account, which writes Dynamo's entries of the namespace",
        tls="yes",
        closes="a namespace for each model: Dynamo's operator gives all models of a namespace one role",
    ),
    Hop(
        caller="controllers (GPU health, capacity shift)",
        target="Kubernetes API",
        port="443",
        admitted="their security group",
        authentication="access entry and ClusterRole of their own; to patch a node includes every field",
        tls="yes",
        rules=(r"the cluster: tcp 443 from Controllers of the platform",),
        tests=(
            "tests/cluster/test_gpu_health.py::test_everything_else_is_forbidden",
            "tests/cluster/test_capacity_shift.py::test_everything_else_is_forbidden",
            "tests/cluster/test_deploy.py::test_only_who_has_an_access_entry_is_let_in",
        ),
    ),
    Hop(
        caller="the function that applies Kubernetes manifests",
        target="Kubernetes API",
        port="443",
        admitted="CDK's function",
        authentication="access entry of an administrator of the cluster",
        tls="yes",
        closes="nothing of ours: the CDK installs charts so. Whoever may invoke or change this function "
        "administers the cluster, so nobody else gets `lambda:InvokeFunction` or `lambda:UpdateFunction*`",
    ),
    Hop(
        caller="workers on nodes and hosts",
        target="instance metadata",
        port="80",
        admitted="EKS: the host's network (hop limit 1). ECS: root of the host; Managed Instances: nobody",
        authentication="IMDSv2",
        tls="no",
        tests=("tests/templates/test_ecs_capacity.py::test_only_root_reaches_the_credentials_of_the_host",),
    ),
    Hop(
        caller="anybody",
        target="ECS Managed Instances, and instances that bake images",
        port="-",
        admitted="nobody",
        authentication="-",
        tls="-",
        tests=(
            "tests/templates/test_ecs_capacity.py::test_nobody_connects_to_a_managed_instance",
            "tests/templates/test_image_cache.py::test_nobody_reaches_the_instance",
        ),
    ),
    Hop(
        caller="batch workers",
        target="S3, SQS, Step Functions, DynamoDB; with a front door, Secrets Manager",
        port="443",
        admitted="the role of a model's workers",
        authentication="IAM, bounded to jobs of the model",
        tls="yes",
        tests=(
            "tests/templates/test_batch_stack.py::test_workers_may_read_what_teams_name_and_write_below_jobs_alone",
            "tests/templates/test_batch_behind_a_door.py::test_workers_call_the_door_with_keys_that_they_may_read",
            "tests/templates/test_team_isolation.py::test_nobody_reaches_what_belongs_to_another",
        ),
    ),
    Hop(
        caller="applications",
        target="batch API",
        port="443",
        admitted="the VPC, through the API's own endpoint",
        authentication="SigV4, a token that STS confirms for this platform, or an API key of the front door "
        "without limits of its own",
        tls="yes",
        rules=(r"HTTPS from the VPC to APIs: tcp 443 from [\d./]+",),
        tests=(
            "tests/runtime/batch/api/test_official_client.py::test_a_team_sees_nothing_of_another",
            "tests/runtime/batch/authorizer/test_authorizer.py::test_a_caller_of_no_team_is_told_so",
            "tests/runtime/batch/authorizer/test_authorizer.py::test_a_token_for_another_platform_is_refused_by_sts",
            "tests/runtime/batch/authorizer/test_door_keys.py::test_a_key_with_limits_is_told_why",
            "tests/templates/test_team_isolation.py::test_nobody_reaches_what_belongs_to_another",
        ),
    ),
    Hop(
        caller="people and pipelines of a team",
        target="API of the front door's keys",
        port="443",
        admitted="the VPC, through the API's own endpoint",
        authentication="SigV4, by a principal that the blueprint gives the team",
        tls="yes",
        rules=(r"HTTPS from the VPC to the API: tcp 443 from [\d./]+",),
        tests=(
            "tests/templates/test_key_api.py::test_only_signed_requests_from_the_vpc_reach_the_function",
            "tests/templates/test_key_api.py::test_teams_have_no_other_way_to_keys_than_the_api",
            "tests/runtime/key_api/test_key_api.py::test_who_belongs_to_no_team_gets_nothing",
            "tests/runtime/key_api/test_key_api.py::test_a_key_for_another_team_is_refused",
        ),
    ),
    Hop(
        caller="functions, tasks and nodes",
        target="services of AWS, through endpoints of the VPC",
        port="443",
        admitted="the VPC",
        authentication="IAM",
        tls="yes",
        rules=(r"HTTPS from the VPC to AWS endpoints: tcp 443 from [\d./]+",),
        tests=(
            "tests/templates/test_policies.py::test_every_wildcard_has_a_reason",
            "tests/templates/test_policies.py::test_nothing_is_allowed_to_everybody",
        ),
    ),
    Hop(
        caller="streaming jobs, producers of events",
        target="Kafka",
        port="9098",
        admitted="the VPC",
        authentication="IAM: a job's topics and its group",
        tls="yes",
        rules=(r"Kafka from the VPC: tcp 9098 from [\d./]+",),
        tests=(
            "tests/templates/test_streaming_stack.py::test_clients_reach_brokers_by_tls_and_iam_only",
            "tests/templates/test_streaming_stack.py::test_a_job_reaches_its_own_topics_group_signals_and_objects_only",
        ),
    ),
    Hop(
        caller="streaming jobs, the publisher of batch",
        target="Valkey, writing",
        port="6379",
        admitted="the VPC",
        authentication="IAM users; a streaming job writes its own signal, batch's publisher all of batch",
        tls="yes",
        rules=(r"Valkey from the VPC: tcp 6379 from [\d./]+",),
        tests=(
            "tests/runtime/signals/test_access.py::test_the_reader_writes_nothing",
            "tests/runtime/signals/test_access.py::test_neither_lists_deletes_or_looks_elsewhere",
            "tests/templates/test_stream_users.py::test_the_user_of_a_job_writes_its_signal_only",
        ),
    ),
    Hop(
        caller="readers of signals",
        target="Valkey, reading",
        port="6379, 6380",
        admitted="the VPC",
        authentication="an IAM user that reads the signals of all teams",
        tls="yes",
        rules=(r"Valkey from the VPC: tcp 6380 from [\d./]+",),
        closes="a user for each team: access strings take patterns of keys, and keys begin with the signal",
    ),
    Hop(
        caller="Prometheus; the CloudWatch agent for GPUs",
        target="metrics of frontends, workers and GPUs",
        port="8000, 9090, 9400",
        admitted="EKS: workers admit Prometheus, frontends and exporters each pod. ECS: each task and host",
        authentication="none",
        tls="no",
        closes="a port of its own for metrics, and policies for frontends and exporters",
    ),
    Hop(
        caller="KEDA, capacity shift, GPU health",
        target="Prometheus's API, and its metrics in CloudWatch",
        port="80 (EKS), 9090 (ECS)",
        admitted="each pod, task and host of the platform",
        authentication="none. Whoever answers at a port that Prometheus reads changes the number of workers",
        tls="no",
        closes="a policy for Prometheus's pods; signed metrics do not exist",
    ),
    Hop(
        caller="frontends and workers with traces",
        target="CloudWatch agent (OTLP)",
        port="4317",
        admitted="each pod, task and host of the platform",
        authentication="none: anybody of these can add spans",
        tls="no",
        closes="a policy for the agent's pods",
    ),
    Hop(
        caller="the canary, with a front door",
        target="Secrets Manager",
        port="443",
        admitted="the role of the canary",
        authentication="IAM, for the secret with its own key",
        tls="yes",
        tests=("tests/templates/test_canary.py::test_behind_a_front_door_it_asks_there_with_its_own_key",),
    ),
    Hop(
        caller="front door, with traces",
        target="CloudWatch agent (OTLP)",
        port="4318",
        admitted="each pod, task and host of the platform, and the front door",
        authentication="none: anybody of these can add spans",
        tls="no",
        rules=(r"Hosts and tasks: tcp 4318 from Front door",),
        closes="a policy for the agent's pods",
    ),
    Hop(
        caller="workers, copies of weights",
        target="Hugging Face Hub, or any address of the internet",
        port="443",
        admitted="every pod, task and host: nothing limits what they call",
        authentication="the token of the model's secret",
        tls="yes",
        closes="`weights.s3` or `weights.mirror` for the workers, and a firewall of the VPC for the rest",
    ),
    Hop(
        caller="workers and copies of weights",
        target="buckets of weights",
        port="443",
        admitted="the role of the model",
        authentication="IAM, bounded to the prefix with its slash; digests are checked while copying",
        tls="yes",
        tests=(
            "tests/templates/test_weights_mirror.py::test_the_mirror_writes_below_the_commits_prefix_alone",
            "tests/templates/test_weights_mirror.py::test_workers_read_the_copy_and_neither_write_it_nor_read_the_token",
        ),
    ),
)


def ingress(templates: Templates) -> Iterator[str]:
    """Yield each rule of a security group as ``target: protocol port from source``, in the groups' words."""
    names = dict(_names(templates))
    for template in templates.by_stack.values():
        for logical_id, resource in template["Resources"].items():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::EC2::SecurityGroup":
                for rule in properties.get("SecurityGroupIngress", []):
                    yield _spelled(f"${{{logical_id}.GroupId}}", rule, names)
            elif resource["Type"] == "AWS::EC2::SecurityGroupIngress":
                yield _spelled(text(properties["GroupId"]), properties, names)


def _names(templates: Templates) -> Iterator[tuple[str, str]]:
    """Yield the description of each security group, by every reference to it."""
    groups = {
        f"${{{logical_id}.GroupId}}": text(resource["Properties"]["GroupDescription"])
        for template in templates.by_stack.values()
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::EC2::SecurityGroup"
    }
    yield from groups.items()
    for template in templates.by_stack.values():
        for name, output in template.get("Outputs", {}).items():
            group = text(output["Value"])
            if group in groups:
                yield name, groups[group]


def _spelled(target: str, rule: dict[str, object], names: dict[str, str]) -> str:
    first, last = rule.get("FromPort"), rule.get("ToPort")
    span = f"{first}" if first == last else f"{first}-{last}"
    ports = "all" if rule["IpProtocol"] == "-1" else f"{rule['IpProtocol']} {span}"
    source = text(rule.get("CidrIp") or rule.get("SourceSecurityGroupId") or rule.get("SourcePrefixListId"))
    return f"{_named(target, names)}: {ports} from {_named(source, names)}"


def _named(reference: str, names: dict[str, str]) -> str:
    if "ClusterSecurityGroupId" in reference:
        return "the cluster"
    output = reference.removeprefix("${").removesuffix("}").rpartition(".")[2]
    return names.get(reference) or names.get(output) or reference


def hops_of(rule: str) -> list[Hop]:
    """Return the rows to which a rule of `ingress` belongs."""
    return [hop for hop in HOPS if any(re.fullmatch(pattern, rule) for pattern in hop.rules)]


@dataclass(frozen=True)
class Rights:
    """What a role may do."""

    stack: str
    role: str
    taken_by: str
    """Who assumes it."""
    grants: tuple[str, ...]
    """Actions of one service on resources, with conditions."""


def rights(templates: Templates) -> Iterator[Rights]:
    """Yield each role with all its statements, in the order of the templates."""
    for stack, template in templates.by_stack.items():
        resources = template["Resources"]
        for logical_id, resource in resources.items():
            if resource["Type"] != "AWS::IAM::Role":
                continue
            properties = resource["Properties"]
            attached = [
                each
                for each in resources.values()
                if each["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
                and {"Ref": logical_id} in each["Properties"].get("Roles", [])
            ]
            managed = [text(each) for each in properties.get("ManagedPolicyArns", [])]
            own = [resources[each[2:-1]] for each in managed if each[2:-1] in resources]
            yield Rights(
                stack=stack,
                role=re.sub(r"[0-9A-F]{8}$", "", logical_id),
                taken_by=", ".join(_principals(properties["AssumeRolePolicyDocument"])),
                grants=(
                    *(
                        f"all of {name[1]}"
                        for each in managed
                        if (name := re.search(r"policy/([\w/-]+)", each))
                    ),
                    *(_grant(each) for holder in (resource, *attached, *own) for each in statements(holder)),
                ),
            )


def _principals(trust: dict[str, object]) -> Iterator[str]:
    for statement in listed(trust["Statement"]):
        for who in statement["Principal"].values():
            yield from (text(each).removesuffix(".amazonaws.com") for each in listed(who))


def _grant(statement: dict[str, object]) -> str:
    denied = "never " if statement["Effect"] == "Deny" else ""
    actions = ", ".join(str(each) for each in listed(statement["Action"]))
    places = ", ".join(dict.fromkeys(_short(text(each)) for each in listed(statement["Resource"])))
    condition = ", if " + ", ".join(_conditions(statement["Condition"])) if "Condition" in statement else ""
    return f"{denied}{actions} on {places}{condition}"


def _conditions(condition: object) -> Iterator[str]:
    assert isinstance(condition, dict)
    for operator, values in condition.items():
        for key, wanted in values.items():
            yield f"{key} {operator} {' or '.join(_short(text(each)) for each in listed(wanted))}"


def _short(resource: str) -> str:
    """Return an ARN without partition, region and account, and references without hashes."""
    named = re.sub(
        r"arn:(?:aws|\$\{AWS::Partition\}):([\w-]+):[^:]*:(?:\$\{AWS::AccountId\}|[^:]*):", r"\1:", resource
    )
    named = re.sub(r"\$\{(?:[\w-]+\.)?([\w]+?)[0-9A-F]{8}(?:\.\w+)?\}", r"{\1}", named)
    return re.sub(r"\$\{(?:[\w-]+\.)?([\w:]+)\}", r"{\1}", named)
