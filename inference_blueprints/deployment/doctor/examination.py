"""All checks, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.deployment.doctor import access, capacity, network, weights
from inference_blueprints.deployment.doctor.patient import Patient
from inference_blueprints.deployment.observation import Checks, Observation, observations

#: By the name that observations carry, in the order in which they are shown.
CHECKS: Checks[Patient] = {
    "CDK command line": access.command_line,
    "bootstrap": access.bootstrap,
    "quotas": capacity.quotas,
    "offerings": capacity.offerings,
    "weights": weights.weights,
    "network": network.existing_network,
    "certificate": network.certificate,
}


def examine(patient: Patient) -> Iterator[Observation]:
    """Iterate over everything found; without usable credentials nothing else is asked.

    Parameters
    ----------
    patient
        Account and blueprint.
    """
    credentials = access.credentials(patient)
    yield credentials
    if credentials.severity != "error":
        yield from observations(CHECKS, patient)
