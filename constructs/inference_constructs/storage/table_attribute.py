"""Key attributes of DynamoDB's tables."""

from __future__ import annotations

from aws_cdk import aws_dynamodb as dynamodb


def text_attribute(name: str) -> dynamodb.Attribute:
    """Return a key attribute that holds text.

    Parameters
    ----------
    name
        Its name.
    """
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
