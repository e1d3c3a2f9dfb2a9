"""The signal store: answers of models about things, fast enough to read during a request.

A signal has a name, a key, and the newest value. `signals.reading` reads it, `signals.store` writes it too,
and `signals.connection` finds a cache with TLS and IAM. The folder is also published as the
package ``inference-signals`` for readers.
"""
