"""ElastiCache Serverless on this machine: a real Valkey with TLS and IAM tokens."""

from typing import Final

RESOURCE_TYPE: Final = "AWS::ElastiCache::ServerlessCache"
#: File name of the certificate of the authority of a run's caches.
AUTHORITY_FILE: Final = "authority.crt"
