"""The command that writes the file of a new platform: init."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import write_file
from inference_blueprints.cli.options import Output, OutputOption, print_json
from inference_contracts.errors import BlueprintError, Problem, UserError

if TYPE_CHECKING:
    from inference_blueprints.report.first_blueprint import Wish

_USUAL_MODEL = "Qwen/Qwen3-8B"
_SUFFIXES = (".yaml", ".yml")
_REGIONS = ("AWS_REGION", "AWS_DEFAULT_REGION")


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("init")(init)


def init(
    blueprint: Annotated[
        str | None,
        typer.Argument(metavar="[BLUEPRINT]", help="Name of a shipped blueprint, to copy it."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="File to write; it must not exist yet. Default: NAME.yaml."),
    ] = None,
    *,
    use: Annotated[
        str | None, typer.Option("--use", metavar="USE", help="chat, batch, stream or images.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", metavar="REPOSITORY", help="Model on Hugging Face, such as Qwen/Qwen3-8B."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="GPU", help="Kind of GPU, such as l40s or h200.")
    ] = None,
    region: Annotated[
        str | None, typer.Option("--region", metavar="REGION", help="AWS region, such as us-west-2.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="PLATFORM", help="Name of your platform.")
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a blueprint of your own, or copy a shipped one.

    Your own is for a use, a model and a GPU. In a terminal, what is not given is asked, and `?` lists the
    answers. The JSON Schema is copied too, for
    completion in editors.
    """
    if blueprint is not None and file is None and blueprint.endswith(_SUFFIXES):
        file, blueprint = Path(blueprint), None
    _demand_new(file)
    options = {"--use": use, "--model": model, "--gpu": gpu, "--region": region}
    if blueprint is None:
        wish = _wished({**options, "--name": name}, output)
        file = file or Path(f"{wish.name}.yaml")
        _demand_new(file)
        text = _written(wish)
    else:
        text, name = _copied(blueprint, name, options, output)
        file = file or Path(f"{name}.yaml")
        _demand_new(file)
        _copy_rates(blueprint, file.parent)
    _write(file, text, output)


def _demand_new(file: Path | None) -> None:
    if file is not None and file.exists():
        raise UserError(f"{file}: already exists; choose another file, or remove it first")


def _write(file: Path, text: str, output: Output) -> None:
    """Write the file and the schema, and say what comes next."""
    from inference_blueprints.resources import blueprints_directory, schema_path

    # The same relative path as in the library, so that the file's `$schema` line needs no change.
    schema_copy = file.parent / schema_path().relative_to(blueprints_directory())
    write_file(schema_copy, schema_path().read_text(encoding="utf-8"))
    write_file(file, text)
    if output is Output.JSON:
        print_json({"blueprint": str(file), "schema": str(schema_copy)})
    else:
        print(f"wrote {file}; next: blueprints plan {file}")


def _copied(
    blueprint: str, name: str | None, given: Mapping[str, str | None], output: Output
) -> tuple[str, str]:
    """Return the text of a shipped blueprint with another name, and the name."""
    from inference_blueprints.report.first_blueprint import demand_name
    from inference_blueprints.spec.source import find
    from inference_blueprints.spec.text_edit import with_platform_name

    source = find(blueprint)
    further = [option for option, value in given.items() if value is not None]
    if further:
        raise UserError(
            f"got the blueprint {blueprint} and {', '.join(further)}; a copy keeps its model and pools. "
            "Leave out the blueprint, or the options"
        )
    if name is None:
        if not _in_a_terminal():
            raise UserError(
                "--name is missing: name your platform with it, for example --name my-platform; two "
                "platforms of one account and region cannot have the same name"
            )
        name = _asked("Name of your platform", None, (), demand_name, output)
    options = _Options({"--name": name})
    options.take("--name", demand_name)
    options.demand_right()
    return with_platform_name(source.read_text(encoding="utf-8"), str(source), name), name


def _copy_rates(blueprint: str, folder: Path) -> None:
    """Copy the files with recorded rates that a shipped blueprint names to the same places below a folder.

    Raises UserError if a file is there with another content.
    """
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.spec.sections.workloads.rules import stated_days
    from inference_blueprints.spec.source import find

    beside = find(blueprint).parent
    names = [day.rates for _, day in stated_days(load_blueprint(blueprint).written.spec) if day.rates]
    texts = {folder / name: (beside / name).read_text(encoding="utf-8") for name in names}
    for path, text in texts.items():
        if path.exists() and path.read_text(encoding="utf-8") != text:
            _demand_new(path)
    for path, text in texts.items():
        write_file(path, text)


def _wished(given: Mapping[str, str | None], output: Output) -> Wish:
    """Return what the options say; ask for what they do not, if there is a terminal.

    Raises UserError with all options that are missing, or all that are wrong.
    """
    from inference_blueprints.report import first_blueprint as first

    missing = [option for option, value in given.items() if value is None]
    if missing and not _in_a_terminal():
        verb = "is" if len(missing) == 1 else "are"
        example = next((each for each in first.USES if each == given["--use"]), "chat")
        raise UserError(
            f"{', '.join(missing)} {verb} missing, and there is no terminal to ask; write them, for example "
            f"`blueprints init --use {example} --model {_usual_model(example)} --gpu l40s --region us-west-2 "
            "--name my-platform`, or copy a shipped blueprint: "
            "`blueprints init quickstart-g6e FILE --name NAME`"
        )
    options = _Options(given)
    use = options.take("--use", first.demand_use)
    region = options.take("--region", first.demand_region)
    name = options.take("--name", first.demand_name)
    model = use and options.take("--model", partial(first.demand_model, use=use))
    if use and model and region:
        options.take("--gpu", partial(first.demand_gpu, wish=first.Wish(use, model, region, gpu="")))
    options.demand_right()
    uses = [f"{name}: {what}" for name, what in first.USES.items()]
    use = use or _asked("What for; ? lists the uses", "chat", uses, first.demand_use, output)
    demand_model = partial(first.demand_model, use=use)
    model = options.take("--model", demand_model) or _asked(
        "Model; ? lists all", _usual_model(use), first.models(use), demand_model, output
    )
    regions = first.regions()
    here = next((each for key in _REGIONS if (each := os.environ.get(key)) in regions), "us-west-2")
    region = region or _asked("Region; ? lists all", here, regions, first.demand_region, output)
    wish = first.Wish(use, model, region, gpu="")
    demand_gpu = partial(first.demand_gpu, wish=wish)
    gpu = options.take("--gpu", demand_gpu)
    options.demand_right()
    if gpu is None:
        gpu = _asked(
            "GPU; ? lists those that fit", first.usual_gpu(wish), first.fitting_gpus(wish), demand_gpu, output
        )
    name = name or _asked("Name of your platform", None, (), first.demand_name, output)
    return replace(wish, gpu=gpu, name=name)


def _usual_model(use: str) -> str:
    """Return the model that is proposed for a use."""
    from inference_blueprints.report.first_blueprint import models

    known = models(use)
    return _USUAL_MODEL if _USUAL_MODEL in known else next(iter(known))


def _written(wish: Wish) -> str:
    """Return the file, and say on standard error what it asks for."""
    from inference_blueprints.report.first_blueprint import first_blueprint
    from inference_blueprints.report.plan.short_plan import headline
    from inference_blueprints.report.plan.summary import summarise
    from inference_blueprints.serving.plan import build_plan

    loaded = first_blueprint(wish)
    print(headline(summarise(loaded.blueprint, build_plan(loaded.blueprint))), file=sys.stderr)
    return loaded.text


class _Options:
    """The options that are given, and what is wrong with them.

    given: Value by option; None if the option is not given.
    """

    def __init__(self, given: Mapping[str, str | None]) -> None:
        self._given = given
        self._wrong: dict[str, Problem] = {}

    def take(self, option: str, demand: Callable[[str], str]) -> str | None:
        """Return the value of an option; None if it is not given, or wrong."""
        value = self._given[option]
        try:
            return None if value is None else demand(value)
        except UserError as error:
            self._wrong[option] = Problem(option, 0, 0, "", str(error))
        return None

    def demand_right(self) -> None:
        """Raise BlueprintError with all options that are wrong."""
        if self._wrong:
            raise BlueprintError([*self._wrong.values()])


def _in_a_terminal() -> bool:
    return sys.stdin.isatty()


def _asked(
    question: str,
    usual: str | None,
    choices: Collection[str],
    demand: Callable[[str], str],
    output: Output,
) -> str:
    """Ask until an answer is right. Raises typer.Abort at Ctrl-C."""

    def right(answer: str) -> str:
        if answer.strip() == "?" and choices:
            return "?"
        try:
            return demand(answer.strip())
        except UserError as error:
            raise typer.BadParameter(_folded(str(error), len("Error: "))) from error

    # With a default, an empty answer is checked too; without one, the question comes again without a word.
    ask = partial(
        typer.prompt,
        question,
        default=usual or "",
        show_default=usual is not None,
        value_proc=right,
        err=output is Output.JSON,
    )
    while (answer := str(ask())) == "?":
        print(*map(_folded, choices), sep="\n", file=sys.stderr)
    return answer


def _folded(text: str, taken: int = 0) -> str:
    """Return a text in rows of the terminal, which break between words.

    taken: Columns that the first row has no more.
    """
    width = shutil.get_terminal_size().columns
    rows = textwrap.wrap(
        f"{'':{taken}}{text}", width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(rows)[taken:]
