"""The signal store: what models said of a thing, readable while a request waits.

A signal has a name, a key, and the newest value. `signals.reading` reads it, `signals.store` writes it too,
and `signals.connection` finds a cache with TLS and IAM. The folder is also a package of its own,
``inference-signals``, for those who read.
"""
