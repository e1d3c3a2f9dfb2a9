"""Patches for gaps of the emulator, one module each. Every module has `apply`."""

from collections.abc import Callable

from inference_local.emulator.patches import (
    alarm_evaluation,
    changing_stacks,
    custom_resource_errors,
    distributed_maps,
    instance_protection,
    log_group_names,
    logs_of_functions,
    metric_queries,
    metrics_of_logs,
    network_names,
    no_docker,
    promql_evaluation,
    request_checks,
    secret_references,
    secret_rotation,
    stack_status_polling,
    task_tokens,
    upload_parts,
    used_interfaces,
    worker_lifetime,
)

PATCHES: tuple[Callable[[], None], ...] = (
    alarm_evaluation.apply,
    changing_stacks.apply,
    custom_resource_errors.apply,
    distributed_maps.apply,
    instance_protection.apply,
    log_group_names.apply,
    logs_of_functions.apply,
    metric_queries.apply,
    metrics_of_logs.apply,
    network_names.apply,
    no_docker.apply,
    promql_evaluation.apply,
    request_checks.apply,
    secret_references.apply,
    secret_rotation.apply,
    stack_status_polling.apply,
    task_tokens.apply,
    upload_parts.apply,
    used_interfaces.apply,
    worker_lifetime.apply,
)
