"""Prepares a task of Amazon ECS and then becomes the engine: `python3 -m task_start -- COMMAND`.

A task on a host's network knows neither its address nor its ports before it starts. This program finds the
first, takes the second, fills both into the engine's command and environment, and replaces itself by the
engine (`exec`), so that process ID, signals and exit code are the engine's. It uses Python's standard library
only, because it ships inside the task definition to images of other projects.

The variable ``TASK_START`` holds what to do as JSON; `task_start.start_document` names its keys. Further
programs: `task_start.node_fill` before the engine, and `task_start.live_check` beside it.
"""
