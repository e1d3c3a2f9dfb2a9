"""Keys with which batch, streaming jobs and the canary call models through the front door."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from constructs import Construct

from inference_constructs.front_door import DoorStore, PlatformKeySecrets
from inference_contracts.platform_keys import KeyOwner


class PlatformKeysStack(cdk.Stack):
    """A secret for each program, and the function that makes and rotates all keys.

    It depends on the tables of the front door only, and so comes before the door and before who calls it.

    platform: `metadata.name`.
    owners: Programs that have keys.
    store: Tables and buckets of the front door.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        owners: Sequence[KeyOwner],
        store: DoorStore,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        keys = PlatformKeySecrets(self, "Keys", platform=platform, owners=owners, store=store)
        #: The secret of each program, by `KeyOwner.tag`.
        self.secrets = keys.secrets
