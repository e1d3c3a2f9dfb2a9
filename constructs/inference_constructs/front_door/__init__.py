"""The front door: its stores, the records of usage, its route at the load balancer, and what runs it."""

from typing import TYPE_CHECKING

from inference_constructs.lazy_names import lazy_names

if TYPE_CHECKING:
    from inference_constructs.front_door.carried_spending import CarriedSpending
    from inference_constructs.front_door.door_image import DoorImage
    from inference_constructs.front_door.door_key_api import DoorKeyApi, isolate_keys
    from inference_constructs.front_door.door_route import DoorTargets
    from inference_constructs.front_door.door_store import AuditBucket, DoorStore, UsageBucket
    from inference_constructs.front_door.door_tables import DoorKeyTable, DoorLedgerTable
    from inference_constructs.front_door.ledger_cache import LedgerCache
    from inference_constructs.front_door.ledger_reconciliation import LedgerReconciliation, UsageAlarms
    from inference_constructs.front_door.platform_keys import PlatformKeySecret, PlatformKeySecrets
    from inference_constructs.front_door.usage_stream import UsageStream
    from inference_constructs.front_door.usage_tables import UsageTables
    from inference_constructs.front_door.watched_object import WatchedObject
else:
    __getattr__ = lazy_names(__name__, __file__)

__all__ = [
    "AuditBucket",
    "CarriedSpending",
    "DoorImage",
    "DoorKeyApi",
    "DoorKeyTable",
    "DoorLedgerTable",
    "DoorStore",
    "DoorTargets",
    "LedgerCache",
    "LedgerReconciliation",
    "PlatformKeySecret",
    "PlatformKeySecrets",
    "UsageAlarms",
    "UsageBucket",
    "UsageStream",
    "UsageTables",
    "WatchedObject",
    "isolate_keys",
]
