"""Updates a global table without a name in place. ministack makes another one, without the items.

It looks for the table under the name that it would generate for the physical id, not for the logical one.
Source: CloudFormation Template Reference, AWS::DynamoDB::GlobalTable, ResourcePolicy: "the existing policy in
DynamoDB will be updated to match the one defined in the template". Of the properties in our templates, only
`KeySchema` and `LocalSecondaryIndexes` replace a table.

What ministack's handler removes before it calls that of `AWS::DynamoDB::Table`, that one does not read.
"""

from ministack.services.cloudformation.provisioners import _RESOURCE_HANDLERS

_TABLE = _RESOURCE_HANDLERS["AWS::DynamoDB::Table"]


def apply() -> None:
    """Apply the patch."""
    _RESOURCE_HANDLERS["AWS::DynamoDB::GlobalTable"] |= {
        name: _TABLE[name] for name in ("update", "update_with_logical_id")
    }
