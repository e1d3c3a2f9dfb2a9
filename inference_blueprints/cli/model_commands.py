"""Commands about entries of models next to a blueprint: models add."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inference_blueprints.cli.options import Output, OutputOption, print_json
from inference_contracts.errors import UserError
from inference_contracts.units import GIB, MIB

if TYPE_CHECKING:
    from inference_catalog import Model

app = typer.Typer(help="Describe models that the catalogue does not have.", no_args_is_help=True)

_EXPORTED = "hf_quant_config.json"
_WEIGHT_INDEX = "model.safetensors.index.json"


def register(root: typer.Typer) -> None:
    """Add the group `models` to the command line."""
    root.add_typer(app, name="models")


@app.callback()
def models() -> None:
    """Describe models that the catalogue does not have."""


@app.command()
def add(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The model's config.json.")],
    *,
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="OWNER/NAME", help="Its repository. Default: as FILE names it."),
    ] = None,
    to: Annotated[
        Path, typer.Option("--to", metavar="FOLDER", help="Folder `models` next to the blueprint.")
    ] = Path("models"),
    answer_format: Annotated[
        str | None,
        typer.Option(
            "--answer-format", metavar="FORMAT", help="Format of its answers, which sets the parsers."
        ),
    ] = None,
    licence: Annotated[str, typer.Option("--licence", metavar="TEXT", help="Its licence.")] = "not stated",
    gated: Annotated[
        bool, typer.Option("--gated", help="The Hub requires an accepted licence and a token.")
    ] = False,
    layers: Annotated[
        Path | None,
        typer.Option(
            "--layers", metavar="FILE", help="What its layers cache, as JSON, if its class is not counted."
        ),
    ] = None,
    weights_gib: Annotated[
        float | None,
        typer.Option(
            "--weights-gib", metavar="GIB", help="Size of its weights, if its class is not counted."
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Make an entry from a model's config.json. Blueprints next to the folder can then serve the model.

    ModelOpt's hf_quant_config.json is read too if it is beside FILE, and for --layers the size of the weights
    from model.safetensors.index.json.
    """
    from inference_blueprints.spec.lock.lock_text import write_text
    from inference_blueprints.spec.model_files import entry_of, is_repository, read_json
    from inference_catalog.configurations.config_fields import ModelConfigError, UncountedClassError

    configuration = read_json(file)
    if not isinstance(configuration, dict):
        raise UserError(f"{file}: must be a JSON object; give the model's config.json")
    beside = file.parent / _EXPORTED
    exported = read_json(beside) if beside.is_file() and beside != file else None
    named = name or _own_name(configuration)
    if not is_repository(named):
        raise UserError(
            f"{file}: got name {named[:80]!r}, must be a repository such as acme/Acme-7B; set --name"
        )
    document = {
        "name": named,
        "configuration": configuration,
        "exportedQuantization": exported,
        "answerFormat": answer_format,
        "gated": gated,
        "licence": licence,
        "source": f"{file.name}, given by the user",
    }
    document |= _given(file, layers, weights_gib)
    target = to / f"{named.replace('/', '--')}.json"
    try:
        entry = entry_of(document, target)
    except UncountedClassError as error:
        raise UserError(f"{file}: {error}\n{_what_to_give(file, configuration)}") from error
    except ModelConfigError as error:
        lines = [f"{file}: {line}" for line in str(error).splitlines()]
        raise UserError("\n".join(lines)) from error
    try:
        to.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{to}: cannot be made: {error.strerror}; set --to to another folder") from error
    write_text(target, _json(document))
    if output is Output.JSON:
        print_json({"file": str(target), "model": _as_dict(entry)})
        return
    for line in _lines(entry):
        print(line)
    if layers is not None:
        print("weights and layers are as given, not counted")
    key = f"huggingFace: {named}"
    use = f"`speculation: {{eagle: {{{key}}}}}`" if entry.draft else f"`{key}` or `catalog: {named}`"
    print(f"wrote {target}; set {use} in a blueprint next to `{to}`")


def _own_name(configuration: dict[str, Any]) -> str:
    """Return the name that a configuration gives itself."""
    name = configuration.get("_name_or_path")
    return name if isinstance(name, str) else ""


def _given(file: Path, layers: Path | None, weights_gib: float | None) -> dict[str, Any]:
    """Return the fields of a model whose layers and weights the user gives; empty if they are counted."""
    from inference_blueprints.spec.model_files import read_json

    if layers is None:
        if weights_gib is not None:
            raise UserError("--weights-gib: got it without --layers, to which it belongs; give both")
        return {}
    return {
        "layers": read_json(layers),
        "weightsGib": _stated_gib(file) if weights_gib is None else weights_gib,
        "source": f"{file.name}, given by the user with its layers and the size of its weights",
    }


def _stated_gib(file: Path) -> float | None:
    """Return the size of the weights beside a config.json, as the index of their files states it."""
    from inference_blueprints.spec.model_files import read_json

    beside = file.parent / _WEIGHT_INDEX
    if not beside.is_file():
        return None
    index = read_json(beside)
    metadata = index.get("metadata") if isinstance(index, dict) else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    return size / GIB if isinstance(size, int) and size > 0 else None


def _what_to_give(file: Path, configuration: dict[str, Any]) -> str:
    """Return what to give for a model whose class is not counted, with an example from its own fields."""
    import json
    from typing import get_args

    from inference_catalog.cached_layers import LayerKind
    from inference_catalog.configurations.given_model import example_layers

    size = _stated_gib(file)
    option = "" if size else " --weights-gib GIB"
    known = f" (its weights, {size:.1f} GiB, are in {_WEIGHT_INDEX})" if size else ""
    return (
        f"give what its layers cache: write a list such as {json.dumps(example_layers(configuration))} "
        f"into layers.json, and run `blueprints models add {file} --layers layers.json{option}`{known}\n"
        "this list holds if all layers are alike and attend to every token; allowed kinds are "
        f"{', '.join(get_args(LayerKind))}\n"
        "or, if its layers are those of a class that is counted, such as LlamaForCausalLM, write that name "
        "into 'architectures' of a copy of the file"
    )


def _json(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _lines(entry: Model) -> list[str]:
    """Return what was counted, to compare with the publisher's figures."""
    active = f", {entry.active_parameters_billion:g} billion active" if entry.experts else ""
    predicted = f", and {entry.predicted_layers} for multi-token prediction" if entry.predicted_layers else ""
    drafted = (
        [f"draft: {entry.draft.method}, for a model of hidden size {entry.draft.target_hidden_size}"]
        if entry.draft
        else []
    )
    cached = (
        [f"KV cache: {entry.kv_bytes_per_token() / 1024:.1f} KiB per token in 16 bits"]
        if entry.cached_layers
        else []
    )
    return [
        f"{entry.name}: {entry.architecture}, {entry.parameters_billion:g} billion parameters{active}",
        f"weights: {entry.weight_bytes / GIB:.1f} GiB, {entry.weight_type}",
        f"layers: {entry.layers}{predicted}; {', '.join(dict.fromkeys(_layer_words(entry)))}",
        *cached,
        f"context: {entry.context_length} tokens",
        *drafted,
    ]


def _layer_words(entry: Model) -> Iterator[str]:
    """Yield what the layers cache: one part per kind, with its number of layers if there are several."""
    groups = [
        each for each in entry.cached_layers if each.own or each.tokens_per_entry > 1 or each.kind == "state"
    ]
    if not groups:
        yield "they cache nothing"
    for group in groups:
        size = f"{group.state_bytes(1) / MIB:.1f} MiB"
        words = {
            "full": f"{group.kv_heads} KV heads",
            "window": f"see {group.window} tokens",
            "chunk": f"see chunks of {group.window} tokens",
            "latent": "latent attention",
            "state": f"keep a state of {size} per request",
            "cross": "read what an encoder writes",
            "none": "read what other layers cache",
        }[group.kind]
        if group.tokens_per_entry > 1:
            words = f"keep an entry per {group.tokens_per_entry} tokens"
        link = "with " if words.endswith(("KV heads", "latent attention")) else ""
        yield f"{group.count} {link}{words}" if len(groups) > 1 else words


def _as_dict(entry: Model) -> dict[str, str | float | None]:
    return {
        "name": entry.name,
        "architecture": entry.architecture,
        "parametersBillion": entry.parameters_billion,
        "activeParametersBillion": entry.active_parameters_billion,
        "weightType": entry.weight_type,
        "weightBytes": entry.weight_bytes,
        "layers": entry.layers,
        "windowLayers": entry.window_layers,
        "kvBytesPerToken": entry.kv_bytes_per_token(),
        "contextLength": entry.context_length,
    }
