"""Checks the platform's zones in this account. Zone names stand for other places in each account."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import inference_catalog as catalog
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.doctor.doctor_context import DoctorContext
from inference_blueprints.spec.zones import platform_zones

#: EKS requires subnets in two zones (Amazon EKS User Guide, "Subnet requirements for clusters").
_LEAST_ZONES = 2


def zones(context: DoctorContext) -> Iterator[CheckResult]:
    """Check that the account has the platform's zones, and that EKS accepts subnets in them."""
    ids = _zone_ids(context)
    refused = catalog.zone_ids_without_control_plane()
    wanted = platform_zones(context.environment)
    problems = [
        f"this account has no zone {zone}"
        if zone not in ids
        else f"{zone} is {ids[zone]} in this account, where EKS accepts no control plane"
        for zone in wanted
        if ids.get(zone) is None or ids[zone] in refused
    ]
    if not problems:
        names = ", ".join(f"{zone} ({ids[zone]})" for zone in wanted)
        yield CheckResult("zones", "ok", names)
        return
    usable = [zone for zone, zone_id in ids.items() if zone_id not in refused]
    yield CheckResult("zones", "error", f"{'; '.join(problems)}; {_advice(context, wanted, usable)}")


def _zone_ids(context: DoctorContext) -> Mapping[str, str]:
    """Return the account's zones of the region, without Local Zones and Wavelength Zones: ID by name."""
    filters = [{"Name": "zone-type", "Values": ["availability-zone"]}]
    answer = context.account.client("ec2").describe_availability_zones(Filters=filters)
    found = {zone["ZoneName"]: zone["ZoneId"] for zone in answer["AvailabilityZones"]}
    return dict(sorted(found.items()))


def _advice(context: DoctorContext, wanted: Sequence[str], usable: Sequence[str]) -> str:
    """Return what to write into the blueprint: its usable zones, and others in place of the rest."""
    if context.blueprint.spec.network.existing:
        return "use subnets in other zones, and name these in environment.availabilityZones"
    kept = [zone for zone in wanted if zone in usable]
    chosen = [*kept, *(zone for zone in usable if zone not in kept)][: len(wanted)]
    if len(chosen) < _LEAST_ZONES:
        return "a platform needs two zones; use another region"
    return f"set environment.availabilityZones: [{', '.join(sorted(chosen))}]"
