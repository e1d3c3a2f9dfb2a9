"""The command `blueprints`: finds the module of a command, and turns errors into lines and exit codes.

Only the module of the command is imported, and commands import what they need when they run, so that
`blueprints validate` answers in a fraction of a second.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Annotated

import typer

from inference_blueprints.cli.added_commands import KNOWN, added_module, added_names
from inference_blueprints.cli.options import machine_output_wanted
from inference_blueprints.garbage import collect_rarely
from inference_contracts.errors import BlueprintError, Problem, UserError

INTERRUPTED = 130

#: Module of this package that registers each command or group of commands, in the order of the help text.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("list", "show", "init", "validate", "schema", "plan"), "blueprint_commands"),
        "tune": "tune_command",
        "benchmark": "benchmark_command",
        "doctor": "doctor_command",
        **dict.fromkeys(("synth", "bootstrap", "deploy", "diff"), "deploy_commands"),
        "lock": "lock_commands",
        "upgrade": "upgrade_command",
        "verify": "verify_command",
        "costs": "costs_command",
        **dict.fromkeys(("destroy", "prune"), "removal_commands"),
        "take-over": "ownership_commands",
        **dict.fromkeys(("token", "batch"), "batch_commands"),
        "signals": "signal_commands",
        "streaming": "streaming_commands",
        "capacity": "capacity_commands",
        "image-cache": "image_cache_commands",
        "charts": "charts_commands",
        "models": "model_commands",
    }
)


def command_line(command: str | None = None) -> typer.Typer:
    """Return the command line with the module of one command; with all modules if the command is unknown.

    Every module costs time: typer inspects the parameters of all commands before it runs one.
    """
    module = MODULES.get(command or "")
    if command in KNOWN:
        modules, added = [], [command]
    elif module:
        modules, added = [module], []
    else:
        modules, added = list(dict.fromkeys(MODULES.values())), added_names()
    root = typer.Typer(
        name="blueprints",
        no_args_is_help=True,
        add_completion=len(modules) > 1,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    root.callback()(_describe)
    for name in modules:
        import_module(f"{__package__}.{name}").register(root)
    for name in added:
        added_module(name).register(root)
    return root


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the option's value
    """Print the version of the library, and end the command."""
    if wanted:
        from importlib import metadata

        print(f"blueprints {metadata.version('inference-blueprints')}")
        raise typer.Exit


def _describe(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Build an LLM inference platform on AWS from one YAML file."""


def main() -> None:
    """Run the command line; an error that the user can fix is one line on standard error and exit code 1."""
    # pydantic would read the metadata of every installed package to look for plugins; the library has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    collect_rarely()
    try:
        command_line(*sys.argv[1:2])()
    except UserError as error:
        _report(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe (`blueprints list | head`). Print nothing more, also not at exit.
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
