"""Errors of the APIs of ECS and of Application Auto Scaling."""

from __future__ import annotations


class AwsApiError(Exception):
    """An answer with an error.

    code: Name of the exception in the API's model.
    message: What is wrong.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
