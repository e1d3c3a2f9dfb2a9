"""Takes shards of batch jobs from a queue and brings a result for each of their lines, exactly once.

One program, `python3 -m batch.worker`, for any image that has Python 3.11 and the packages of
`requirements.txt` beside it. Its contract is environment variables; `batch.worker.settings` names them.
"""
