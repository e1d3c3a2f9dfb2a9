"""Commands about releases of engines: engines record, engines compare."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_catalog import Engine

app = typer.Typer(
    help="Serve releases of vLLM and SGLang without waiting for Dynamo, on direct and llmD.",
    no_args_is_help=True,
)

ToOption = Annotated[
    Path, typer.Option("--to", metavar="FOLDER", help="Folder `engines` next to the blueprint.")
]


def register(root: typer.Typer) -> None:
    """Add the group `engines` to the command line."""
    root.add_typer(app, name="engines")


@app.callback()
def engines() -> None:
    """Serve releases of vLLM and SGLang without waiting for Dynamo, on direct and llmD."""


@app.command()
def record(
    wheel: Annotated[
        str,
        typer.Argument(
            metavar="WHEEL", help="A wheel's file, or a release on the package index: vllm==0.33.0"
        ),
    ],
    *,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE:TAG", help="Image of the release. Default: the publisher's."),
    ] = None,
    to: ToOption = Path("engines"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Record flags, model classes and variables of a release. Blueprints next to the folder can then name it.

    The modules that define them are read from the wheel, about 2 MB over HTTP, and never run. pip or uv finds
    the wheel on the package index that is configured on this machine.
    """
    import json

    from inference_blueprints.spec.engine_files import engine_of_file
    from inference_blueprints.spec.lock.lock_text import write_text
    from inference_catalog.engine_wheels.release_file import release_file
    from inference_catalog.engine_wheels.wheels import open_wheel

    text = release_file(open_wheel(wheel), image=image)
    document = json.loads(text)
    target = to / f"{document['name']}-{document['version']}.json"
    engine = engine_of_file(document, target)
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{to}: cannot be made: {error.strerror}; set --to to another folder") from error
    write_text(target, text)
    if output is Output.JSON:
        print_json({"file": str(target), "engine": _as_dict(engine)})
        return
    print(
        f"{engine.name} {engine.version}: {len(engine.flags) + len(engine.server_flags)} flags, "
        f"{len(engine.model_classes)} model classes, {len(engine.environment_names)} environment variables, "
        f"image {engine.address}"
    )
    print(
        f"wrote {target}; set `engine: {{{engine.name}: {{image: {{release: {engine.version}}}}}}}` on "
        f"{'`direct` or `llmD`' if engine.name == 'vllm' else '`direct`'} in a blueprint next to `{to}`"
    )


@app.command()
def compare(
    name: Annotated[str, typer.Argument(metavar="ENGINE", help="vllm or sglang.")],
    releases: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OLD NEW]", help="Two releases. Default: Dynamo's, and the newest recorded."),
    ] = None,
    *,
    to: Annotated[
        Path, typer.Option("--engines", metavar="FOLDER", help="Folder `engines` next to the blueprint.")
    ] = Path("engines"),
    output: OutputOption = Output.TEXT,
) -> None:
    """Show which flags and model classes differ between two recorded releases of an engine."""
    from inference_blueprints.report.engine_differences import compared, recorded_releases

    known = recorded_releases(name, to)
    old, new = _chosen(known, releases or [])
    found = compared(old, new)
    if output is Output.JSON:
        print_json({"engine": name, "old": old.engine_version, "new": new.engine_version, **found.as_dict()})
        return
    for line in found.lines(old, new):
        print(line)


def _chosen(known: dict[str, Engine], given: list[str]) -> tuple[Engine, Engine]:
    """Return the two releases to compare."""
    from inference_catalog.releases import version_order

    wrong = [each for each in given if each not in known]
    if wrong or len(given) not in (0, 2):
        got = ", ".join(map(repr, wrong)) or f"{len(given)} release{'s' * (len(given) != 1)}"
        raise UserError(f"got {got}, give none or two of {', '.join(known)}")
    if given:
        return known[given[0]], known[given[1]]
    own = [each for each in known.values() if not each.on_dynamo]
    [old] = [each for each in known.values() if each.on_dynamo]
    return old, max(own, key=lambda each: version_order(each.engine_version))


def _as_dict(engine: Engine) -> dict[str, object]:
    """Return what a program may want to know of a recorded release."""
    return {
        "name": engine.name,
        "release": engine.version,
        "image": engine.address,
        "wheel": engine.wheel,
        "date": engine.date,
        "flags": len(engine.flags) + len(engine.server_flags),
        "modelClasses": len(engine.model_classes),
        "environmentNames": len(engine.environment_names),
    }
