"""An API server and a CloudWatch on loopback that have what GPU health asks for, and nothing else.

The API server of the other tests is real (`tests/cluster`); this one has nodes that break, and is told when
to fail. Its CloudWatch answers the queries of `worker_metrics` and `dcgm_readings` from samples.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from urllib.parse import parse_qs

from werkzeug.serving import WSGIRequestHandler, make_server

KubernetesObject = dict[str, Any]
StartResponse = Callable[..., Any]


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def node_object(
    name: str,
    *,
    created: float,
    pool: str = "h200",
    rack: str = "rack-0",
    gpus: int = 8,
    allocatable: int | None = None,
    labels: dict[str, str] | None = None,
    owner: str | None = "",
) -> KubernetesObject:
    """Return a ready node of Karpenter. Without an owner, nothing replaces it."""
    claim = f"claim-{name}" if owner == "" else owner
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": moment(created),
            "labels": {
                "karpenter.sh/nodepool": pool,
                "karpenter.sh/capacity-type": "on-demand",
                "karpenter.k8s.aws/instance-gpu-count": str(gpus),
                "node.kubernetes.io/instance-type": "p5en.48xlarge",
                "topology.k8s.aws/network-node-layer-3": rack,
                **(labels or {}),
            },
            "annotations": {},
            "ownerReferences": [] if claim is None else [{"kind": "NodeClaim", "name": claim}],
        },
        "spec": {"providerID": f"aws:///us-west-2a/i-{name}"},
        "status": {
            "nodeInfo": {"bootID": f"boot-{name}"},
            "allocatable": {"nvidia.com/gpu": str(gpus if allocatable is None else allocatable)},
            "conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": moment(created), "reason": ""}
            ],
        },
    }


def pod_object(name: str, node: str, *, ready: float, release: str = "main") -> KubernetesObject:
    """Return a ready worker."""
    return {
        "metadata": {
            "name": name,
            "namespace": "inference",
            "uid": f"uid-{name}",
            "labels": {
                "inference-blueprints/release": release,
                "inference-blueprints/role": "worker",
                "inference-blueprints/pool": "h200",
                "pod-template-hash": "abc",
            },
        },
        "spec": {"nodeName": node, "containers": [{"name": "engine", "image": "vllm"}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": moment(ready)}],
        },
    }


@dataclass
class Samples:
    """Samples of workers, and what exporters say of nodes."""

    workers: dict[tuple[str, str], dict[float, float]] = field(default_factory=dict)
    """Values by time, by series and pod."""
    nodes: dict[str, dict[str, float]] = field(default_factory=dict)
    """GPUs and other parts of the query of readings, by node."""
    neighbours: dict[str, float] = field(default_factory=dict)
    """GPUs that another platform of the same account and region lists, by the same names of nodes. They count
    too in a query that does not select the platform."""

    def put(self, at: float, series: str, pod: str, value: float) -> None:
        self.workers.setdefault((series, pod), {})[at] = value

    def answer(self, path: str, form: dict[str, str]) -> list[dict[str, Any]]:
        query = form["query"]
        if path.endswith("query_range"):
            return self._range(query, *(float(form[name]) for name in ("start", "end", "step")))
        names = re.findall(r'node=~"([^"]*)"', query)[0].replace("[.]", ".").split("|")
        parts = re.findall(r'"what", "(\w+)"', query)
        at = float(form["time"])
        strangers = (
            {} if re.findall("{[^}]*}", query) == re.findall('{platform="[^}]*}', query) else self.neighbours
        )
        return [
            {
                "metric": {"node": name, **({"what": what} if parts else {})},
                "value": [at, str(value + (strangers.get(name, 0.0) if what == "gpus" else 0.0))],
            }
            for name in names
            for what, value in self.nodes.get(name, {}).items()
            if what in (parts or ["gpus"])
        ]

    def _range(self, query: str, start: float, end: float, step: float) -> list[dict[str, Any]]:
        found = re.fullmatch(r'last_over_time\((\w+){platform="\w+",pod=~"([^"]*)"}\[60s\]\)', query)
        assert found is not None, query
        times = [start + step * number for number in range(round((end - start) / step) + 1)]
        answer = []
        for pod in found[2].replace("[.]", ".").split("|"):
            mine = self.workers.get((found[1], pod), {})
            points = [
                [at, str(value)] for at in times for when, value in mine.items() if at - step < when <= at
            ]
            if points:
                answer.append({"metric": {"pod": pod, "node": "n"}, "values": points})
        return answer


class FakeCluster:
    """The two servers, at one address."""

    def __init__(self) -> None:
        self.nodes: dict[str, KubernetesObject] = {}
        self.pods: dict[str, KubernetesObject] = {}
        self.claims: dict[str, KubernetesObject] = {}
        self.samples = Samples()
        #: Answers a query that is not about workers or nodes: of an alarm.
        self.alarm_query: Callable[[str, float], list[dict[str, Any]]] = lambda _query, _at: []
        #: Requests that changed something: method and path.
        self.acts: list[str] = []
        #: Status that is answered instead, by the beginning of "METHOD path".
        self.failing: dict[str, int] = {}
        #: Queries of metrics.
        self.queries = 0
        #: Whether an eviction lets the pod end at once.
        self.pods_end = True
        #: What happens when a NodeClaim is deleted.
        self.on_claim_deleted: Callable[[str], object] = str
        #: How far the clock of the API server is ahead.
        self.skew = 0.0
        server = make_server("127.0.0.1", 0, self._answer, threaded=True, request_handler=self._handler())
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        self.address = f"http://127.0.0.1:{server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _handler(self) -> type[WSGIRequestHandler]:
        cluster = self

        class Handler(WSGIRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_request(self, *_: Any) -> None:
                """Say nothing."""

            def date_time_string(self, timestamp: float | None = None) -> str:
                del timestamp
                return super().date_time_string(time.time() + cluster.skew)

        return Handler

    def add_node(self, node: KubernetesObject, *pods: KubernetesObject) -> None:
        name = node["metadata"]["name"]
        self.nodes[name] = node
        for reference in node["metadata"]["ownerReferences"]:
            self.claims[reference["name"]] = {
                "metadata": {"name": reference["name"], "uid": f"uid-{reference['name']}"},
                "status": {"providerID": node["spec"]["providerID"]},
            }
        self.samples.nodes[name] = {"gpus": 8.0}
        self.pods |= {pod["metadata"]["name"]: pod for pod in pods}

    def remove_node(self, name: str) -> None:
        self.nodes.pop(name, None)
        self.pods = {key: pod for key, pod in self.pods.items() if pod["spec"]["nodeName"] != name}

    def _answer(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length)
        status = next(
            (code for start, code in self.failing.items() if f"{method} {path}".startswith(start)), 0
        )
        if not status and path.startswith("/api/v1/query"):
            form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
            content: Any = {"status": "success", "data": {"result": self._series(path, form)}}
            status = 200
        elif not status:
            query = {name: values[0] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
            status, content = self._kubernetes(method, path, query, json.loads(body) if body else None)
        else:
            content = {"message": "told to fail"}
        text = json.dumps(content).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
        start_response(f"{status} X", headers)
        return [text]

    def _series(self, path: str, form: dict[str, str]) -> list[dict[str, Any]]:
        self.queries += 1
        if form["query"].startswith("topk("):  # as all queries of alarms on hardware do
            return self.alarm_query(form["query"], float(form["time"]))
        return self.samples.answer(path, form)

    def _kubernetes(
        self, method: str, path: str, query: dict[str, str], body: Any
    ) -> tuple[int, dict[str, Any]]:
        if method != "GET":
            self.acts.append(f"{method} {path}")
        parts = path.strip("/").split("/")
        if parts[-1] == "eviction":
            return self._evict(parts[-2])
        store = {"nodes": self.nodes, "pods": self.pods, "nodeclaims": self.claims}
        if parts[-1] in store:
            found_all = self._selected(store[parts[-1]].values(), query)
            first, limit = int(query.get("continue", 0)), int(query["limit"])
            more = {"continue": str(first + limit)} if first + limit < len(found_all) else {}
            return 200, {"metadata": more, "items": found_all[first : first + limit]}
        kind, name = parts[-2], parts[-1]
        found = store[kind].get(name)
        if found is None:
            return 404, {"message": f"{kind} {name} not found"}
        if method == "PATCH":
            return self._patch(found, body)
        if method == "DELETE":
            if body["preconditions"]["uid"] != found["metadata"]["uid"]:
                return 409, {"message": "another object"}
            found["metadata"]["deletionTimestamp"] = moment(time.time())
            self.on_claim_deleted(name)
        return 200, found

    @staticmethod
    def _selected(objects: Iterable[KubernetesObject], query: dict[str, str]) -> list[KubernetesObject]:
        found = list(objects)
        if "fieldSelector" in query:
            node = query["fieldSelector"].removeprefix("spec.nodeName=")
            found = [each for each in found if each["spec"]["nodeName"] == node]
        if "labelSelector" in query:
            found = [each for each in found if query["labelSelector"] in each["metadata"].get("labels", {})]
        return found

    def _patch(self, node: KubernetesObject, change: Any) -> tuple[int, dict[str, Any]]:
        if change["metadata"]["uid"] != node["metadata"]["uid"]:
            return 409, {"message": "another object"}
        self.patched(node["metadata"]["name"], change)
        for name, value in change["metadata"]["annotations"].items():
            node["metadata"]["annotations"][name] = value
            if value is None:
                del node["metadata"]["annotations"][name]
        if change["spec"]["unschedulable"] is None:
            node["spec"].pop("unschedulable", None)
        else:
            node["spec"]["unschedulable"] = True
        return 200, node

    def patched(self, name: str, change: Any) -> None:
        """Notice that a node is changed."""

    def _evict(self, name: str) -> tuple[int, dict[str, Any]]:
        if name not in self.pods:
            return 404, {"message": "gone"}
        if self.pods_end:
            del self.pods[name]
        return 201, {"status": "Success"}

    # --- What tests ask. ---

    def cordoned(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node["spec"].get("unschedulable")]

    def deleted_claims(self) -> list[str]:
        return [act for act in self.acts if act.startswith("DELETE")]
