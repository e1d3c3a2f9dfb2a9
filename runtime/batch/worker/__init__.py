"""Takes shards of batch jobs from a queue and writes exactly one result for each line.

The program is `python3 -m batch.worker`. It runs in any image with Python 3.11 and the packages of
`requirements.txt`. Environment variables configure it (`batch.worker.settings`).
"""
