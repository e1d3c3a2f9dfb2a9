"""Our programs inside a task definition: as a variable of a container, and the command that runs them.

Serving thereby needs no image of ours: the programs run with the Python of an engine's image.
"""

from __future__ import annotations

from inference_blueprints.serving.packed_program import LOADER, packed_program

#: Variable that holds the archive.
TASK_PROGRAM = "TASK_PROGRAM"
#: Entry point of a container that runs a program, in place of that of its image. That of AWS's images for
#: Neuron does not pass SIGTERM on (``common/vllm_entrypoint.py`` of aws-neuron/deep-learning-containers at
#: 2be9ed1).
PROGRAM_ENTRY_POINT = ("python3",)
# The process that the module starts or becomes does not inherit the variable.
_LOADER = LOADER.format(text=f'os.environ.pop("{TASK_PROGRAM}")')


def task_program(module: str) -> str:
    """Return the value of the variable: the same for the same files, so that it changes no task needlessly.

    module: The module that the container runs: ``task_start``, also for its health check, or
        ``task_start.node_fill``. ``task_targets`` needs an image with boto3.
    """
    return packed_program(module)


def program_arguments(module: str, *words: str) -> tuple[str, ...]:
    """Return what follows `PROGRAM_ENTRY_POINT` in a container that runs one of our programs.

    module, words: Those of `program_command`.
    """
    return tuple(program_command(module, *words)[len(PROGRAM_ENTRY_POINT) :])


def program_command(module: str, *words: str) -> list[str]:
    """Return the words of a process that runs one of our programs.

    module: ``task_start``, ``task_start.live_check`` or ``task_start.node_fill``.
    words: Its arguments.
    """
    return [*PROGRAM_ENTRY_POINT, "-c", _LOADER, module, *words]
