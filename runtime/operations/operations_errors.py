"""Errors of services that a controller calls. Each run reads everything again, so none of them is final."""

from __future__ import annotations


class OperationsError(Exception):
    """A service did not answer, or refused."""


class OperationsSettingsError(OperationsError):
    """Environment variables are missing or invalid. One message names all of them."""


class KubernetesError(OperationsError):
    """The API server refused a request, or did not answer.

    message: What happened.
    status: HTTP status. 0 if there was no answer: then the request may have been carried out.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class EcsError(OperationsError):
    """Amazon ECS, or Application Auto Scaling for it, did not answer, or refused."""


class MetricsError(OperationsError):
    """CloudWatch did not answer a query, or not completely."""


class TableError(OperationsError):
    """DynamoDB did not answer, or refused."""


class VersionConflictError(TableError):
    """Somebody else wrote the item since it was read."""
