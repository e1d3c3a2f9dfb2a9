"""ElastiCache serverless on this machine: a real Valkey behind encryption and tokens of IAM."""

from typing import Final

RESOURCE_TYPE: Final = "AWS::ElastiCache::ServerlessCache"
#: Certificate of who vouches for the caches of a run, in their folder.
AUTHORITY_FILE: Final = "authority.crt"
