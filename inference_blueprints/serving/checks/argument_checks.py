"""Checks of arguments and environment variables: the pinned release has them, the plan does not set them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType

import inference_catalog as catalog
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import ArgumentNames
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.owned_environment import owner_reason
from inference_blueprints.serving.stacks.serving_stack import ServingStack
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec import types as spec
from inference_blueprints.spec.types import NO_PARSER, ArgumentValue
from inference_blueprints.spec.wording import quote, suggestion
from inference_contracts.errors import Finding

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# At the end of a name: VLLM_SHARED_EXPERTS_STREAM_TOKEN_THRESHOLD is none.
_SECRET_NAME = re.compile(
    r"(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|API_?KEY|ACCESS_KEY(_ID)?|PRIVATE_KEY|AUTH)$",
    re.IGNORECASE,
)
# Tokens of Hugging Face, GitHub and OpenAI, AWS access keys and private keys.
_SECRET_VALUE = re.compile(
    r"(^hf_[A-Za-z0-9]{20,}$|^gh[pousr]_[A-Za-z0-9]{20,}|^sk-[A-Za-z0-9_-]{20,}$|^A(KIA|SIA)[0-9A-Z]{16}$"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----)"
)
_MAXIMUM_CHARACTERS = 4096


def environment_findings(
    model: spec.Model, engine: catalog.Engine, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check the variables of a model's workers and frontends.

    engine: Release of the model's engine.
    model_path: Path of the model in the blueprint.
    Yields: An error for each variable that the plan owns, that looks like a secret or that no process can
        have; a warning for each variable of the engine that its release does not define.
    """
    workers = model.engine.section.env
    path = (*model_path, "engine", model.engine.chosen, "env")
    yield from _wrong(workers, path, frontend=False)
    yield from _unknown_variables(workers, engine, path)
    if model.frontend:
        yield from _wrong(model.frontend.env, (*model_path, "frontend", "env"), frontend=True)


def _wrong(
    environment: Mapping[str, str], path: tuple[str | int, ...], *, frontend: bool
) -> Iterator[Finding]:
    """Yield errors, at most one per variable."""
    for name, value in environment.items():
        reason = owner_reason(name, frontend=frontend)
        if not _NAME.fullmatch(name):
            message = (
                f"got {quote(name)}, allowed are up to 128 letters, digits and underscores, no digit first"
            )
        elif reason:
            message = f"the platform sets {quote(name)} itself; {reason}; remove it"
        elif _SECRET_NAME.search(name) or _SECRET_VALUE.search(value):
            message = (
                f"{quote(name)} looks like a secret, and whoever reads the template or the pod would read it"
                "; remove it. The token of the Hugging Face Hub is 'weights.tokenSecretArn'"
            )
        else:
            message = _value_problem(value) or ""
        if message:
            yield Finding((*path, name), message)


def _value_problem(value: str) -> str | None:
    """Return the problem of a value; None if it has none."""
    if len(value) > _MAXIMUM_CHARACTERS:
        return f"got {len(value)} characters, allowed are {_MAXIMUM_CHARACTERS}"
    if any(ord(character) < ord(" ") for character in value):
        return "got a line break or another control character, allowed is one line of text"
    if "$(" in value:
        return "got '$(', which Kubernetes would replace by another variable; write the value itself"
    return None


def _unknown_variables(
    environment: Mapping[str, str], engine: catalog.Engine, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Yield a warning for each name with the engine's prefix that the engine does not define."""
    recorded = catalog.environment_names().get(engine.name)
    if recorded is None:
        return
    pinned = recorded.names if recorded.release == engine.engine_version else ()
    known = engine.environment_names or pinned
    for name in environment:
        if known and name.startswith(recorded.prefix) and name not in known:
            message = (
                f"got {quote(name)}, which {engine.name} {engine.engine_version} does not define"
                f"{suggestion(name, known)}; without a program that reads it, it has no effect"
            )
            yield Finding((*path, name), message, severity="warning")


def argument_findings(
    whole: spec.Spec, model: spec.Model, engine: catalog.Engine, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check a model's engine arguments against the flags of the engine's release.

    whole: The blueprint's section.
    engine: Release of the model's engine.
    model_path: Path of the model in the blueprint.
    Yields: An error for each argument that is unknown, is owned by the plan, or has an invalid value; a
        warning for each that nothing reads.
    """
    arguments, stack = model.engine.arguments, STACKS[model.stack.chosen]
    path = (*model_path, "engine", engine.name, "args")
    ignored = {} if stack.runs_own_servers else engine.ignored_arguments
    for name, value in arguments.items():
        message = _message(name, value, engine, stack)
        if message:
            yield Finding((*path, name), message)
        elif name in ignored and value is not False:
            message = (
                f"got '{name}', which only the server of {engine.name} {engine.engine_version} reads, and "
                f"Dynamo's workers do not start it: {ignored[name]}; remove it"
            )
            yield Finding((*path, name), message, "warning")
    for name, message in _conflicts(whole, model, ENGINES[engine.name].argument_names):
        yield Finding((*path, name), message)


def _message(name: str, value: ArgumentValue, engine: catalog.Engine, stack: ServingStack) -> str | None:
    """Return the problem of one argument; None if it has none."""
    serving_engine = ENGINES[engine.name]
    owned = stack.owned_arguments(engine.name)
    if name in owned:
        return f"the plan sets '{name}' itself; {owned[name]}"
    flags = stack.flags(engine)
    flag = flags.get(f"--{name}")
    if flag is None:
        return _elsewhere(name, engine, stack) or _unknown(name, engine, stack)
    if not flag.takes_value:
        return _switch_message(name, value, flag)
    if isinstance(value, bool):
        return f"got {str(value).lower()}, but '{name}' takes a value; give one or leave the argument out"
    if flag.choices and str(value) not in flag.choices:
        close = _closest(str(value), flag.choices)
        hint = f"; did you mean '{close}'?" if close else ""
        return f"got {value!r}, allowed are {', '.join(flag.choices)}{hint}"
    return _value_message(name, value, serving_engine.argument_names)


def _value_message(name: str, value: ArgumentValue, names: ArgumentNames) -> str | None:
    """Return the problem of a value that the plan uses; None if it has none."""
    if name == names.kv_cache_type and value not in names.kv_cache_types:
        return f"got {value!r}, allowed are {', '.join(names.kv_cache_types)}"
    if name in names.counts and not (isinstance(value, int) and value > 0):
        return f"got {value!r}, must be a whole number above 0"
    if name == names.memory_share and not (isinstance(value, int | float) and 0 < value <= 1):
        return f"got {value!r}, must be a number above 0 and at most 1"
    return None


_TEMPLATE = (
    "Dynamo's frontend writes prompts; put the template into a file beside the blueprint, and name it as "
    "'chat: {template: …}' of the model"
)
_THINKING = (
    "Dynamo's frontend writes prompts; to switch thinking off by default, set 'chat: {thinking: false}' of "
    "the model; other values of a template can only be sent with each request, as 'chat_template_kwargs'"
)
_PARSING = "Dynamo's frontend reads answers; set 'parsers' of the model"
#: What does the work of an argument of an engine's own server under Dynamo (``common/configuration/groups/
#: runtime_args.py`` and ``frontend`` of ai-dynamo 1.6.1).
_UNDER_DYNAMO: Mapping[str, str] = MappingProxyType(
    {
        "chat-template": _TEMPLATE,
        "default-chat-template-kwargs": _THINKING,
        "chat-template-kwargs": _THINKING,
        "enable-auto-tool-choice": f"{_PARSING}: with 'toolCall', tools are always chosen freely",
        "tool-call-parser": f"{_PARSING}: {{toolCall: …}}",
        "tool-parser-plugin": f"{_PARSING}: {{toolCall: …}}, one that Dynamo has",
        # Those of ``trtllm-serve``.
        "tool-parser": f"{_PARSING}: {{toolCall: …}}",
        "reasoning-parser": f"{_PARSING}: {{reasoning: …}}",
        "trust-request-chat-template": "Dynamo's frontend takes no templates from requests",
        "enable-prompt-tokens-details": "answers of Dynamo always have these numbers",
        "enable-request-id-headers": "Dynamo's frontend answers with 'x-request-id' itself",
        "api-key": "callers have no key here",
    }
)


def _elsewhere(name: str, engine: catalog.Engine, stack: ServingStack) -> str | None:
    """Return the message for an argument that the engine has, but not under this stack; None for others."""
    if stack.runs_own_servers:
        flag = engine.flags.get(f"--{name}")
        if flag is None or flag.owner != "dynamo":
            return None
        return (
            f"got '{name}', an argument of Dynamo's workers, and this stack starts {engine.name}'s own "
            "server; remove it, or set 'stack: {dynamo: {}}'"
        )
    if f"--{name}" not in engine.server_flags and name not in _UNDER_DYNAMO:
        return None
    others = [each for each, other in STACKS.items() if f"--{name}" in other.flags(engine)]
    ways = _UNDER_DYNAMO.get(
        name, "Dynamo's frontend answers requests, and its workers have no such argument"
    )
    ways = ways.replace("{engine}", engine.name)
    runs = [each for each in others if engine.name in STACKS[each].frameworks]
    other_stack = f"; or set 'stack: {{{runs[0]}: {{}}}}', which starts that server" if runs else ""
    release = f"{engine.name} {engine.engine_version}"
    if f"--{name}" in engine.server_flags:
        whose = f"an argument of the server of {release}, which Dynamo's workers do not start"
    else:
        whose = f"which is no argument of Dynamo's workers with {release}"
    return f"got '{name}', {whose}: {ways}{other_stack}"


def _unknown(name: str, engine: catalog.Engine, stack: ServingStack) -> str:
    """Return the message for an unknown argument, with the most similar one."""
    flags = stack.flags(engine)
    positive = flags.get("--" + name.removeprefix("no-"))
    if name.startswith("no-") and positive and positive.negatable:
        return f"got '{name}'; set '{name.removeprefix('no-')}: false' instead"
    close = _closest(name.lstrip("-").replace("_", "-"), tuple(flag.removeprefix("--") for flag in flags))
    hint = f"; did you mean '{close}'?" if close else ""
    release = f"{engine.name} {engine.engine_version}"
    # Arguments of `trtllm-serve`, such as tool_parser, are not those of Dynamo's workers.
    whose = f"Dynamo's workers with {release}" if engine.name == "tensorrtLlm" else release
    return f"got '{name}', which is not an argument of {whose}{hint}"


# A file may repeat the same mistake hundreds of times, and comparing with hundreds of flags is slow.
@lru_cache(maxsize=1024)
def _closest(spelled: str, known: tuple[str, ...]) -> str | None:
    """Return the most similar name; None if none is similar."""
    close = [spelled] if spelled in known else difflib.get_close_matches(spelled, known, n=1, cutoff=0.75)
    return close[0] if close else None


def _switch_message(name: str, value: ArgumentValue, flag: catalog.Flag) -> str | None:
    """Return the problem of the value of a switch; None if it has none."""
    if not isinstance(value, bool):
        return f"got {value!r}, but '{name}' takes no value; allowed are true and false"
    if value is False and not flag.negatable:
        return f"got false, but '{name}' can only be switched on; leave the argument out"
    return None


def _conflicts(whole: spec.Spec, model: spec.Model, names: ArgumentNames) -> Iterator[tuple[str, str]]:
    """Yield arguments that contradict another part of the model."""
    arguments = model.engine.arguments
    length = arguments.get(names.length)
    if isinstance(length, int) and not isinstance(length, bool) and length > 0:
        shape = model.weights.entry
        traffic = model_traffic(whole, model)
        workload = traffic.means
        needed = workload.input_tokens + workload.output_tokens
        stated = [way for way in traffic.ways if way.states_longest]
        longest = max(stated, key=lambda way: way.stated_tokens, default=None)
        if longest and length < longest.stated_tokens:
            answer = longest.stated_tokens - longest.longest_input
            yield (
                names.length,
                f"got {length}, but requests of {longest.label} have up to {longest.stated_tokens} tokens: "
                f"a prompt of {longest.longest_input} and an answer of {answer}; raise "
                f"'{names.length}', remove it, or lower 'max'",
            )
        elif length < needed:
            yield (
                names.length,
                f"got {length}, the workload needs {needed} tokens: inputTokens {workload.input_tokens} + "
                f"outputTokens {workload.output_tokens}; raise '{names.length}' or lower these",
            )
        if shape and length > shape.context_length and names.stretched_context not in arguments:
            remedy = f", or stretch the position encoding with '{names.stretched_context}'"
            yield (
                names.length,
                f"got {length}, but the context of {shape.name} is {shape.context_length}; lower it"
                + (remedy if names.stretched_context else ""),
            )
    if model.stack.dynamo and model.engine.sglang and not arguments.get("use-sglang-tokenizer"):
        # ``dynamo/sglang/args.py`` of ai-dynamo 1.6.1.
        for name in ("chat-template", "default-chat-template-kwargs"):
            if name in arguments:
                ways = _UNDER_DYNAMO[name].replace("{engine}", "sglang")
                yield name, f"got '{name}', which has no effect without 'use-sglang-tokenizer': {ways}"
    name, value = names.without_prefix_cache
    if model.routing.kv_aware is not None and arguments.get(name) is value:
        yield (
            name,
            f"got {str(value).lower()}, but KV-aware routing needs the cache; remove it or set "
            "'routing: {roundRobin: {}}'",
        )
    if model.kv_cache is not None and arguments.get(name) is value:
        yield (
            name,
            f"got {str(value).lower()}, but 'kvCache' needs the prefix cache; remove this argument or "
            "'kvCache'",
        )


def parser_findings(
    model: spec.Model, engine: catalog.Engine, model_path: tuple[str | int, ...]
) -> Iterator[Finding]:
    """Check the names of a model's parsers against those of the stack's release.

    Yields: An error for each parser that is unknown, or is also set by an engine argument.
    """
    if model.parsers is None:
        return
    stack = STACKS[model.stack.chosen]
    given = {"reasoning": model.parsers.reasoning, "toolCall": model.parsers.tool_call}
    flags = stack.parser_flags(engine.name)
    if flags is None:
        message = f"the server of {quote(engine.name)} has no argument that names a parser; remove it"
        yield Finding((*model_path, "parsers"), message)
        return
    for key, argument in flags.keys.items():
        name, path = given[key], (*model_path, "parsers", key)
        if name is None:
            continue
        if argument in model.engine.arguments:
            message = f"got {quote(name)}, and the engine argument '{argument}' too; remove one of them"
            yield Finding(path, message)
            continue
        flag = stack.flags(engine).get(f"--{argument}")
        known = (NO_PARSER, *flag.choices) if flag else (NO_PARSER,)
        if name not in known:
            message = (
                f"got {quote(name)}, which is not a parser of '{argument}'{suggestion(name, known)}; "
                f"allowed are {', '.join(known)}"
            )
            yield Finding(path, message)
