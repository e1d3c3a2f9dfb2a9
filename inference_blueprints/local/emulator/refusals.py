"""What AWS refuses, as the emulator says it. Each row names its source.

The emulator's own code decides when a row applies. Its words come from here, so that this file lists every
refusal that a deployment on this machine was checked against.
"""

from __future__ import annotations

from dataclasses import dataclass

from inference_blueprints.local.emulator.api_failures import AwsApiError


@dataclass(frozen=True)
class Refusal:
    """An error that AWS answers with.

    Parameters
    ----------
    call
        Service and operation, or the type of the CloudFormation resource.
    when
        What the caller did.
    code
        AWS's name of the error.
    message
        AWS's text. Parts in braces are filled in.
    source
        The document, or the repository and number of a public issue, that shows the refusal.
    """

    call: str
    when: str
    code: str
    message: str
    source: str

    def error(self, **values: str) -> AwsApiError:
        """Return the error with its parts filled in."""
        return AwsApiError(self.code, self.message.format(**values))


POD_IDENTITY_EXISTS = Refusal(
    call="eks:CreatePodIdentityAssociation",
    when="The service account of a cluster has an association already",
    code="ResourceInUseException",
    message="Association already exists: {association}",
    source="eksctl-io/eksctl#7753; EKS API Reference, CreatePodIdentityAssociation",
)

EVENT_INVOKE_LIMIT = Refusal(
    call="lambda:PutFunctionEventInvokeConfig, AWS::Lambda::EventInvokeConfig",
    when="The age of an event is not 60 to 21,600 seconds, or the attempts are not 0 to 2",
    code="ValidationException",
    message=(
        "1 validation error detected: Value '{value}' at '{name}' failed to satisfy constraint: "
        "Member must have value {bound}"
    ),
    source="AWS Lambda API Reference, PutFunctionEventInvokeConfig; words: getmoto/moto, awslambda/models.py",
)

LOG_GROUP_EXISTS = Refusal(
    call="AWS::Logs::LogGroup",
    when="A log group has the name already, also one that a service has created",
    code="AlreadyExists",
    message=(
        "Resource of type 'AWS::Logs::LogGroup' with identifier "
        '\'{{"/properties/LogGroupName":"{name}"}}\' already exists.'
    ),
    source="CloudWatch Logs API Reference, CreateLogGroup: ResourceAlreadyExistsException; aws/aws-cdk#19812",
)

NAME_EXISTS = Refusal(
    call="CloudFormation, creation of a resource",
    when="Another resource of the account and region has the same name",
    code="AlreadyExists",
    message="Resource of type '{type}' with identifier '{name}' already exists.",
    source="CloudFormation CLI User Guide, resource type handler contract: AlreadyExists of a create handler",
)

CUSTOM_NAME_REPLACED = Refusal(
    call="CloudFormation, update of a resource",
    when="A property that cannot change has changed, and the template gives the resource the same name",
    code="ValidationError",
    message=(
        "CloudFormation cannot update a stack when a custom-named resource requires replacing. "
        "Rename {name} and update the stack again."
    ),
    source="re:Post, CloudFormation error of a custom-named resource; the types' createOnlyProperties",
)
