"""The command `blueprints`: finds the module of a command, and turns errors into lines and exit codes.

Only the module of the command is imported, and commands import what they need when they run, so that
`blueprints validate` answers in a fraction of a second.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType
from typing import Annotated, Any, cast

import typer

from inference_blueprints.cli.added_commands import KNOWN, added_module, added_names
from inference_blueprints.cli.options import ExitCode, machine_output_wanted
from inference_blueprints.garbage import collect_rarely
from inference_contracts.errors import BlueprintError, Problem, UserError

#: Module of this package that registers each command or group of commands, in the order of the help text.
MODULES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("list", "show", "validate", "schema", "plan"), "blueprint_commands"),
        "init": "init_command",
        "tune": "tune_command",
        "benchmark": "benchmark_command",
        "doctor": "doctor_command",
        **dict.fromkeys(("synth", "bootstrap", "deploy", "diff"), "deploy_commands"),
        "lock": "lock_commands",
        "upgrade": "upgrade_command",
        "verify": "verify_command",
        "costs": "costs_command",
        "usage": "usage_command",
        **dict.fromkeys(("destroy", "prune"), "removal_commands"),
        "take-over": "ownership_commands",
        **dict.fromkeys(("token", "batch"), "batch_commands"),
        "signals": "signal_commands",
        "keys": "keys_commands",
        "streaming": "streaming_commands",
        "capacity": "capacity_commands",
        "image-cache": "image_cache_commands",
        "charts": "charts_commands",
        "models": "model_commands",
        "engines": "engine_commands",
    }
)

#: Smallest number of columns that output is laid out for. A narrower terminal breaks the lines itself.
_LEAST_COLUMNS = 20


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
    """Run the command line. No error ends it with a traceback."""
    try:
        run()
    except Exception as error:  # noqa: BLE001 - the last place that can turn a traceback into a line
        _report(f"unexpected error: {type(error).__name__}: {error}; {_kept_details()}")
        sys.exit(ExitCode.UNEXPECTED)


def run() -> None:
    """Run the command line, and exit; an error that the user can fix is one line on standard error.

    An error of this program is raised.
    """
    # pydantic would read the metadata of every installed package to look for plugins; the library has none.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    collect_rarely()
    _set_width()
    try:
        # Commands return nothing; the number is that of `typer.Exit`.
        ended = command_line(*sys.argv[1:2])(standalone_mode=False)
    except typer.TyperException as error:
        _report_usage(error)
        sys.exit(error.exit_code)
    except UserError as error:
        _report(str(error), error.problems if isinstance(error, BlueprintError) else ())
        sys.exit(ExitCode.FAILED)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe (`blueprints list | head`).
        _print_no_more()
        sys.exit(ExitCode.OK)
    except OSError as error:
        if error.strerror is None:
            raise
        _report(": ".join(str(part) for part in (error.filename, error.strerror) if part))
        sys.exit(ExitCode.FAILED)
    sys.exit(ended or ExitCode.OK)


def _print_no_more() -> None:
    """Print nothing more on standard output, also not at exit: its reader is gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_width() -> None:
    """Let COLUMNS be a width that output can have. 0 means unknown, as for `shutil.get_terminal_size`."""
    if os.environ.get("COLUMNS") == "0":
        del os.environ["COLUMNS"]
    if shutil.get_terminal_size().columns < _LEAST_COLUMNS:
        os.environ["COLUMNS"] = str(_LEAST_COLUMNS)


_WORDS_OF_PYDANTIC = {
    "Value error, ": "",
    r"Input should be less than or equal to (\S+)": r"must be at most \1",
    r"Input should be greater than or equal to (\S+)": r"must be at least \1",
    r"Input should be less than (\S+)": r"must be below \1",
    r"Input should be greater than (\S+)": r"must be above \1",
    "Input should be a valid integer, .*": "must be a whole number",
    "Input should be a valid number, .*": "must be a number",
}


def _report_usage(error: typer.TyperException) -> None:
    """Print an error of the command line: as typer does, or as JSON."""
    # typer checks values with pydantic, whose words these are.
    for words, ours in _WORDS_OF_PYDANTIC.items():
        error.message = re.sub(words, ours, error.message)
    if not machine_output_wanted(sys.argv[1:]):
        cast(Any, error).show()  # of typer's ClickException, which has no public name
        return
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "blueprints"
    _report(f"{error.format_message().rstrip('.')}; for arguments and options, run `{command} --help`")


def _report(text: str, problems: Sequence[Problem] = ()) -> None:
    """Print an error as lines on standard error, or as JSON on standard output.

    problems: The same error with the positions in files, if it has some.
    """
    if machine_output_wanted(sys.argv[1:]):
        found = [problem.as_dict() for problem in problems or (Problem("", 0, 0, "", text),)]
        try:
            print(json.dumps({"valid": False, "errors": found}, indent=2), flush=True)
        except BrokenPipeError:
            _print_no_more()
        return
    for line in text.splitlines():
        print(line, file=sys.stderr)


def _kept_details() -> str:
    """Write the traceback of the present error to a file, and return where it is."""
    import tempfile
    import traceback

    try:
        with tempfile.NamedTemporaryFile("w", prefix="blueprints-", suffix=".txt", delete=False) as file:
            traceback.print_exc(file=file)
    except OSError as error:
        return f"its details cannot be written: {error.strerror}"
    return f"this is a fault of the program; please report it with the details in {file.name}"


if __name__ == "__main__":
    main()
