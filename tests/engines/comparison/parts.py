"""What is compared: each part asks a layout and returns facts by case."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from dynamo.llm import compute_block_hash_for_seq

from tests.engines.comparison.cases import Case, cache_cases, cases
from tests.engines.comparison.layouts import Layout
from tests.engines.comparison.observation import Fact, answer_text, facts_of
from tests.engines.comparison.router_view import known_blocks

_TEXT = "/v1/completions"
_BLOCK = 64
_SETTLED_SECONDS = 3.0
_EVENT_SECONDS = 60.0
_WAITING = 4
#: Four prompts of this length are more than the KV cache of the layout with few blocks.
_FILLING = 12_800

Observed = dict[str, dict[str, Fact]]


def responses(layout: Layout) -> Observed:
    """Return the facts of the responses to all requests that do not depend on the cache."""
    return _answered(layout, cases(layout.model, layout.context))


def cached(layout: Layout) -> Observed:
    """Return the facts of the responses to prompts that are repeated. The layout has one worker of a role."""
    return _answered(layout, cache_cases(layout.model))


def _answered(layout: Layout, asked: Iterable[Case]) -> Observed:
    observed: Observed = {}
    words: dict[str, str] = {}
    for case in asked:
        response = layout.send(case.path, case.body)
        facts = observed[case.name] = facts_of(response)
        if response.status == 200 and "choices" in facts:
            words[case.name] = answer_text(response)
        if case.same_words_as:
            facts["same words again"] = words[case.name] == words[case.same_words_as]
    return observed


def routing(layout: Layout, file: Path) -> Observed:
    """Return which of several workers gets prompts that share a prefix with earlier ones.

    file: What a router knows, written by `router_view`. A prompt is repeated once its blocks are known.
    """
    observed: Observed = {}
    workers: dict[int, Any] = {}
    _wait_until(file.exists, layout)
    for family in range(4):
        prefix = _token_ids(640, 700 + family)
        chain = compute_block_hash_for_seq(prefix, _BLOCK)
        for turn, prompt in {"first": prefix, "again": prefix, "longer": prefix + _token_ids(200, 1)}.items():
            body = _request(layout, prompt, 1) | {"nvext": {"extra_fields": ["worker_id"]}}
            content = layout.send(_TEXT, body).content
            worker = content["nvext"]["worker_id"]
            observed[f"family {family}, {turn}"] = {
                "cached tokens": content["usage"]["prompt_tokens_details"]["cached_tokens"],
                "the worker of the first": workers.setdefault(family, worker) == worker,
            }
            _wait_until(lambda: {*chain} <= {each["tokens_hash"] for each in known_blocks(file)}, layout)  # noqa: B023 -- called at once
            time.sleep(_SETTLED_SECONDS)  # the frontends have the same events
    return observed


def metrics(layout: Layout) -> Observed:
    """Return the metrics of the frontends, by name."""
    return {name: {"type": kind} for name, kind in _types(layout.frontend_metrics()).items()}


def worker_metrics(layout: Layout) -> Observed:
    """Return the metrics of the workers of each role after a request, by role and name.

    The time at which a counter was created, which Python's client of Prometheus adds, is left out.
    """
    assert layout.send(_TEXT, _request(layout, _token_ids(200, 1), 8)).status == 200
    return {
        f"{role}: {name}": {"type": kind}
        for role, page in layout.worker_metrics().items()
        for name, kind in _types(page).items()
        if not name.endswith("_created")
    }


def _types(page: str) -> dict[str, str]:
    """Return the types of a page's metrics, by name."""
    lines = [line.split() for line in page.splitlines() if line.startswith("# TYPE")]
    return {name: kind for _, _, name, kind in lines}


def blocks(layout: Layout, file: Path, wanted: Observed | None) -> Observed:
    """Return what a router knows after each request, until old blocks are evicted.

    file: What the router knows, written by `router_view`.
    wanted: The facts of the other engine. Events arrive after the response, so these are waited for.
    """
    observed: Observed = {}
    known: dict[str, list[int]] = {}
    _wait_until(file.exists, layout)

    def ask(case: str, tokens: int, answer: int, *, seed: int) -> None:
        prompt = _token_ids(tokens, seed)
        known[f"prompt {seed} of {tokens} tokens"] = compute_block_hash_for_seq(prompt, _BLOCK)
        usage = layout.send(_TEXT, _request(layout, prompt, answer)).content["usage"]

        def facts() -> dict[str, Fact]:
            found = known_blocks(file)
            hashes = Counter(block["tokens_hash"] for block in found)
            return {
                "cached tokens": usage["prompt_tokens_details"]["cached_tokens"],
                "blocks": len(found),
                **{name: sum(hashes[each] > 0 for each in chain) for name, chain in known.items()},
                "block hashes are those of the router": all(
                    block["block_hash"] == block["tokens_hash"] for block in found if block["root"]
                ),
            }

        observed[case] = _settled(facts, (wanted or {}).get(case))

    for seed, case, tokens, answer in (
        (1, "200 tokens", 200, 1),
        (1, "200 tokens again", 200, 1),
        (1, "200 tokens with an answer of 100", 200, 100),
        (2, "127 tokens, one answered", 127, 1),
        (3, "127 tokens, two answered", 127, 2),
        (4, "126 tokens, three answered", 126, 3),
        (5, "128 tokens", 128, 1),
        (5, "128 tokens again", 128, 1),
        (6, "64 tokens with an answer of 130", 64, 130),
        *((10 + number, f"filling {number}", _FILLING, 1) for number in range(4)),
        (1, "200 tokens after they were evicted", 200, 1),
    ):
        ask(case, tokens, answer, seed=seed)
    return observed


def order(layout: Layout, sequences: int) -> Observed:
    """Return in which order requests begin that wait for one of the worker's sequences.

    sequences: Sequences that the worker runs at once. They end one after another.
    """
    running = [f"running {number}" for number in range(sequences)]
    waiting = [f"waiting {number}" for number in range(_WAITING)]
    lengths = {name: 400 + 40 * number for number, name in enumerate(running)} | dict.fromkeys(waiting, 30)
    begun: list[str] = []
    ended: list[str] = []

    def ask(name: str, number: int) -> None:
        body = _request(layout, _token_ids(70, 500 + number), lengths[name]) | {"stream": True}
        for event in layout.events(_TEXT, body):
            if name not in begun and event:
                begun.append(name)
        ended.append(name)

    threads = []
    for number, name in enumerate([*running, *waiting]):
        threads.append(threading.Thread(target=ask, args=(name, number)))
        threads[-1].start()
        _wait_until(lambda: len(begun) + len(ended) >= min(number + 1, sequences), layout)  # noqa: B023 -- called at once
        _wait_until(lambda: layout.in_flight() + len(ended) >= number + 1, layout)  # noqa: B023
    for thread in threads:
        thread.join()
    late = [name for name in begun if name in waiting]
    return {
        "more requests than sequences": {
            "begun in the order of arrival": late == waiting,
            "begun before a sequence was free": begun[:sequences] != running,
            "order of the ends": ", ".join(name for name in ended if name in waiting),
        }
    }


def _request(layout: Layout, prompt: object, answer: int) -> dict[str, Any]:
    return {
        "model": layout.model,
        "prompt": prompt,
        "max_tokens": answer,
        "temperature": 0,
        "ignore_eos": True,
    }


def _wait_until(condition: Callable[[], bool], layout: Layout) -> None:
    deadline = time.monotonic() + _EVENT_SECONDS
    while not condition():
        layout.running.processes.check()
        assert time.monotonic() < deadline, "no request or event has arrived"
        time.sleep(0.05)


def _token_ids(tokens: int, seed: int) -> list[int]:
    return random.Random(seed).choices(range(3, 1900), k=tokens)  # noqa: S311 -- no secret is made


def _settled(facts: Callable[[], dict[str, Fact]], wanted: Mapping[str, Fact] | None) -> dict[str, Fact]:
    """Return facts once they are the wanted ones, or do not change any more."""
    deadline = time.monotonic() + _EVENT_SECONDS
    last, since = facts(), time.monotonic()
    while time.monotonic() < deadline:
        if last == wanted or (wanted is None and time.monotonic() - since > _SETTLED_SECONDS):
            return last
        time.sleep(0.1)
        if (now := facts()) != last:
            last, since = now, time.monotonic()
    return last
