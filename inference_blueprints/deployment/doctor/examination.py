"""All checks, one after the other; a check that AWS does not answer hides no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.deployment.account import described
from inference_blueprints.deployment.doctor import access, capacity, network, weights
from inference_blueprints.deployment.doctor.finding import AccountFinding, Patient

Check = Callable[[Patient], Iterator[AccountFinding]]

#: By the name that findings carry, in the order in which they are shown.
CHECKS: Mapping[str, Check] = {
    "CDK command line": access.command_line,
    "bootstrap": access.bootstrap,
    "quotas": capacity.quotas,
    "offerings": capacity.offerings,
    "weights": weights.weights,
    "network": network.existing_network,
    "certificate": network.certificate,
}


def examine(patient: Patient) -> Iterator[AccountFinding]:
    """Iterate over everything found; without usable credentials nothing else is asked.

    Parameters
    ----------
    patient
        Account and blueprint.
    """
    credentials = access.credentials(patient)
    yield credentials
    if credentials.severity == "error":
        return
    for name, check in CHECKS.items():
        try:
            yield from check(patient)
        except (ClientError, BotoCoreError) as error:
            yield AccountFinding(name, "unknown", f"could not be looked at: {described(error)}")
