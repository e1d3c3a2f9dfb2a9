"""What the filter beside an entry point is told: the variable ``REQUEST_FILTER``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from inference_contracts.request_limits import RequestLimits

#: Variable with the path of the settings, and variable with the path of the packed program.
SETTINGS_VARIABLE: Final = "REQUEST_FILTER"
PROGRAM_VARIABLE: Final = "REQUEST_FILTER_PROGRAM"
#: Variable with the fields and headers of callers that are passed on although they would be removed,
#: separated by commas.
ALLOWED_VARIABLE: Final = "REQUEST_FILTER_ALLOWED"
#: Header of an answer that names what was removed from its request.
REMOVED_HEADER: Final = "x-removed-fields"
#: Paths that the models' load balancer forwards, in the form of its rules.
API_PATHS: Final = ("/v1/*",)
#: Code of the error for a request that is suspected of ending workers.
SUSPECT_CODE: Final = "suspected_of_worker_deaths"
#: Code of the error for a request that has just failed, until it is known whether its worker died.
CHECKED_CODE: Final = "worker_being_checked"

#: How the filter learns that a worker died: it asks the frontend for the workers, or the program that it
#: starts is the worker. With ``none`` it does not learn it, and suspects no request.
WorkerDiscovery = Literal["frontend", "program", "none"]
#: Option with the port of the loopback address at which another container of the pod runs the program. It
#: stands in place of the command of a program that the filter starts.
BEHIND_OPTION: Final = "--behind"
#: Ports for programs that cannot inherit a listening socket. Linux gives outgoing connections, and programs
#: that ask for any port, ports from 32768 on (ip_local_port_range in ip(7)): nobody gets these by chance.
LOOPBACK_PORTS: Final = range(20_000, 32_768)


def port_socket(port: int) -> str:
    """Return the abstract Unix socket (unix(7)) whose owner alone uses a port of the loopback address."""
    return f"\0inference-blueprints/port/{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings:
    """The settings of a filter."""

    host_option: str
    port_option: str
    """`host_option`, `port_option`: Options of the program behind it. The filter listens where they say, and
    gives the program a free port of the loopback address instead."""
    discovery: WorkerDiscovery
    """How it learns of the deaths of workers."""
    drain_seconds: float
    """Shortest time that a worker answers after it has left discovery. One that ends sooner has died."""
    limits: RequestLimits
    priority_headers: dict[str, str]
    """Headers of callers that pass with exactly these values: those with which batch steps back."""
    state: str | None = None
    """File that keeps the suspects while the container starts again, if its folder exists. None without
    one."""
    body_bytes: int = 64 * 2**20
    """Largest size of a body, in bytes."""
    request_seconds: float = 120.0
    """Longest time from the first byte of a request to its last. Bodies that never end would otherwise take
    all room for bodies."""
    buffered_bytes: int = 256 * 2**20
    """Largest size of all bodies that are being read, in bytes."""
    suspect_deaths: int = 2
    """Unexplained deaths of workers after which a request is refused that was in progress at each of them."""
    refused_seconds: float = 120.0
    most_refused_seconds: float = 24 * 3600.0
    """`refused_seconds`, `most_refused_seconds`: Time for which it is refused. It doubles with each time, up
    to the second number."""

    def as_text(self) -> str:
        """Return the settings as JSON."""
        record = {**asdict(self), "limits": self.limits.as_record()}
        return json.dumps(record, separators=(",", ":")) + "\n"

    @classmethod
    def from_text(cls, text: str) -> FilterSettings:
        """Return the settings of a text that `as_text` made."""
        record: dict[str, Any] = json.loads(text)
        return cls(**{**record, "limits": RequestLimits.from_record(record["limits"])})
