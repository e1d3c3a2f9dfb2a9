"""The signal store: what models said of a thing, readable while a request waits.

A signal has a name, a key, and the newest value. `signals.store` writes and reads it in Valkey;
`signals.connection` gets a client for a cache with TLS and IAM.
"""
