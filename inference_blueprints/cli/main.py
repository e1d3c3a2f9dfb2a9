"""The command `blueprints`: its groups, and the one place where errors become lines and exit codes.

Commands import what they need when they run, so that `blueprints validate` answers in a fraction of a second.
"""

from __future__ import annotations

import json
import os
import sys

import typer

from inference_blueprints.cli import (
    batch_commands,
    benchmark_command,
    blueprint_commands,
    charts_commands,
    deploy_commands,
    doctor_command,
    image_cache_commands,
    local_commands,
    lock_commands,
    removal_commands,
    signal_commands,
    tune_command,
    upgrade_command,
    verify_command,
)
from inference_blueprints.cli.options import machine_output_wanted
from inference_blueprints.errors import BlueprintError, Problem, UserError

INTERRUPTED = 130

app = typer.Typer(
    name="blueprints",
    help="One YAML file to an LLM inference platform on AWS.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
blueprint_commands.register(app)
tune_command.register(app)
benchmark_command.register(app)
doctor_command.register(app)
deploy_commands.register(app)
lock_commands.register(app)
upgrade_command.register(app)
verify_command.register(app)
removal_commands.register(app)
batch_commands.register(app)
app.add_typer(signal_commands.app, name="signals")
app.add_typer(image_cache_commands.app, name="image-cache")
app.add_typer(charts_commands.app, name="charts")
app.add_typer(local_commands.app, name="local")


def main() -> None:
    """Run the command line; an error that the user can mend is one line on standard error and exit code 1."""
    try:
        app()
    except UserError as error:
        _report(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone (`blueprints list | head`): nothing is left to say, at exit neither.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


def _report(error: UserError) -> None:
    if machine_output_wanted(sys.argv[1:]):
        problems = (
            error.problems if isinstance(error, BlueprintError) else [Problem("", 0, 0, "", str(error))]
        )
        print(json.dumps({"valid": False, "errors": [problem.as_dict() for problem in problems]}, indent=2))
        return
    for line in str(error).splitlines():
        print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
