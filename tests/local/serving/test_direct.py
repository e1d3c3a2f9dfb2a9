"""The stack without a router on this machine: its load balancer, and scripted servers behind it."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from aiohttp import ClientSession, web

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.dynamo import Dynamo
from inference_blueprints.spec.types import Blueprint
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.free_ports import free_ports
from inference_local.serving.direct.balancer_stand_in import Balancer, LeastRequests
from inference_local.serving.direct.scripted_role import ScriptedRole
from inference_local.serving.direct.scripted_server import ScriptedServer, ScriptedSettings
from inference_local.serving.direct.worker_balancer import WorkerBalancer
from inference_local.serving.http_forwarding import application, forwarding_session
from inference_local.serving.local_frontend import DynamoFrontend
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.ready_workers import ReadyWorkers
from inference_local.serving.simulated_kind import SimulatedKind

_LOOPBACK = "127.0.0.1"
_QUESTION = {"model": "m", "messages": [{"role": "user", "content": "one two"}], "max_tokens": 3}
SETTINGS = ScriptedSettings(
    address=_LOOPBACK,
    port=0,
    model="m",
    answer_tokens=2,
    running="x:running",
    waiting="x:waiting",
    requests="x:n",
)


def direct(**model: Any) -> Blueprint:
    """Return the quickstart without a router."""
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0] |= {"stack": {"direct": {}}, **model}
    return Blueprint.model_validate(document)


@asynccontextmanager
async def serving(runner: web.AppRunner) -> AsyncIterator[str]:
    """Serve on a free port and yield ``HOST:PORT``."""
    await runner.setup()
    site = web.TCPSite(runner, _LOOPBACK, 0)
    await site.start()
    try:
        yield f"{_LOOPBACK}:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def balanced(*workers: str) -> AsyncIterator[str]:
    """Serve a load balancer in front of workers, all of them ready, and yield its URL."""
    known = ReadyWorkers(workers)
    known.ready = {(host, int(port)) for host, _, port in (each.rpartition(":") for each in workers)}
    async with (
        forwarding_session() as session,
        serving(application(Balancer(known, session).handle)) as address,
    ):
        yield f"http://{address}"


def test_a_request_goes_to_the_worker_with_the_fewest_open_requests() -> None:
    workers = ReadyWorkers(("a:1", "b:1", "c:1"))
    workers.ready = {("a", 1), ("b", 1), ("c", 1)}
    minimum = LeastRequests(workers)
    with minimum.chosen() as first, minimum.chosen() as second:
        with minimum.chosen() as third:
            assert {first, second, third} == workers.ready
        with minimum.chosen() as again:
            assert again == third
    with minimum.chosen() as after:
        assert after == first, "among equals, the one that was chosen longest ago"


def test_a_worker_that_is_not_ready_gets_no_request() -> None:
    workers = ReadyWorkers(("a:1", "b:1"))
    minimum = LeastRequests(workers)
    with minimum.chosen() as nobody:
        assert nobody is None
    workers.ready = {("b", 1)}
    for _ in range(3):
        with minimum.chosen() as chosen:
            assert chosen == ("b", 1)


def test_a_worker_that_leaves_gets_no_request(tmp_path: Path) -> None:
    """It turns red if a server that ends at once gets requests until its SIGTERM."""

    async def until(workers: ReadyWorkers, *, ready: bool) -> None:
        async with asyncio.timeout(60):
            while bool(workers.ready) != ready:
                await asyncio.sleep(0.05)

    async def run() -> None:
        async with (
            serving(web.AppRunner(ScriptedServer(SETTINGS).application())) as address,
            ClientSession() as session,
        ):
            workers = ReadyWorkers((address,), tmp_path)
            polling = asyncio.create_task(workers.poll(session))
            await until(workers, ready=True)
            (tmp_path / _LOOPBACK).touch()
            await until(workers, ready=False)
            (tmp_path / _LOOPBACK).unlink()
            await until(workers, ready=True)
            polling.cancel()

    asyncio.run(run())


def test_answers_are_carried_and_other_paths_are_not_reachable() -> None:
    async def run() -> None:
        async with AsyncExitStack() as stack:
            server = await stack.enter_async_context(
                serving(web.AppRunner(ScriptedServer(SETTINGS).application()))
            )
            url = await stack.enter_async_context(balanced(server))
            session = await stack.enter_async_context(ClientSession())
            async with session.post(f"{url}/v1/chat/completions", json=_QUESTION) as answer:
                body = await answer.json()
            assert body["choices"][0]["message"]["content"] == "this answer is"
            assert body["usage"]["completion_tokens"] == 3
            async with session.get(f"{url}/metrics") as hidden:
                assert hidden.status == 404
            async with session.get(f"http://{server}/metrics") as page:
                assert await page.text() == "x:running 0\nx:waiting 0\nx:n 1\n"
            async with session.get(f"{url}/health") as health:
                assert len((await health.json())["instances"]) == 1

    asyncio.run(run())


def test_without_a_worker_the_answer_is_an_error() -> None:
    async def run() -> None:
        (port,) = free_ports(1)
        async with ClientSession() as session:
            async with balanced() as url, session.get(f"{url}/v1/models") as answer:
                assert answer.status == 503
            async with balanced(f"{_LOOPBACK}:{port}") as url, session.get(f"{url}/v1/models") as answer:
                assert answer.status == 502

    asyncio.run(run())


def test_a_scripted_stream_ends_with_its_usage() -> None:
    async def run() -> list[Any]:
        asked = {**_QUESTION, "stream": True, "stream_options": {"include_usage": True}}
        async with (
            serving(web.AppRunner(ScriptedServer(SETTINGS).application())) as address,
            ClientSession() as session,
            session.post(f"http://{address}/v1/chat/completions", json=asked) as answer,
        ):
            lines = (await answer.text()).split("\n\n")
        return [json.loads(each.removeprefix("data: ")) for each in lines if each.startswith("data: {")]

    *pieces, last = asyncio.run(run())
    words = "".join(each["choices"][0]["delta"]["content"] for each in pieces)
    assert words == "this answer is "
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "json_object"}}, None),
    ],
)
def test_a_scripted_server_writes_json_and_refuses_what_it_has_no_script_for(
    fields: dict[str, Any], param: str | None
) -> None:
    """One choice where a caller asked for two, or words for a forced call, looks like a broken client."""

    async def run() -> Any:
        async with (
            serving(web.AppRunner(ScriptedServer(SETTINGS).application())) as address,
            ClientSession() as session,
            session.post(
                f"http://{address}/v1/chat/completions", json={**_QUESTION, "max_tokens": 20, **fields}
            ) as answer,
        ):
            return await answer.json()

    answer = asyncio.run(run())
    if param is None:
        [choice] = answer["choices"]
        assert (list(json.loads(choice["message"]["content"])), choice["finish_reason"]) == (
            ["answer"],
            "stop",
        )
    else:
        assert answer["error"].keys() == {"message", "type", "param", "code"}
        assert answer["error"]["param"] == param


def test_an_engine_that_cannot_be_simulated_is_scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    blueprint = direct()
    [simulated] = LocalTarget(blueprint).render(build_plan(blueprint).models[0])
    assert isinstance(simulated.frontend, DynamoFrontend)
    assert "in place of the load balancer" in simulated.frontend.parts("x")[0].detail
    monkeypatch.setattr(Dynamo, "frameworks", MappingProxyType({}))
    [scripted] = LocalTarget(blueprint).render(build_plan(blueprint).models[0])
    assert isinstance(scripted.frontend, WorkerBalancer)
    assert scripted.frontend.replicas == 1
    [role] = scripted.workers
    assert isinstance(role, ScriptedRole)
    assert (role.state, role.replicas, role.profile) == ("stubbed", 2, None)
    assert "scripted" in role.detail


def test_two_scripted_servers_share_the_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blueprint = direct()
    monkeypatch.setattr(Dynamo, "frameworks", MappingProxyType({}))
    plan = build_plan(blueprint)

    async def ask(url: str) -> None:
        asked = replace_model(plan.models[0].name)
        async with ClientSession() as session:
            posts = [session.post(f"{url}/chat/completions", json=asked) for _ in range(4)]
            for answer in await asyncio.gather(*posts):
                assert answer.status == 200
                await answer.read()

    async def counts(serving: LocalServing) -> Counter[str]:
        found: Counter[str] = Counter()
        async with ClientSession() as session:
            for process in serving.served_processes():
                if process.name.startswith("server"):
                    async with session.get(f"{process.url}/metrics") as page:
                        text = await page.text()
                    found[process.name] = int(text.split("vllm:request_success_total ")[1].split()[0])
        return found

    with (
        ProcessGroup(grace_seconds=1) as group,
        LocalServing(plan, blueprint, tmp_path, group, engines=SimulatedKind(blueprint)) as local,
    ):
        [endpoint] = local.start(lambda _: None)
        asyncio.run(ask(endpoint.base_url))
        assert sorted(asyncio.run(counts(local)).values()) == [2, 2]


def replace_model(model: str) -> dict[str, Any]:
    """Return a question to a model."""
    return {**_QUESTION, "model": model, "max_tokens": 20}
