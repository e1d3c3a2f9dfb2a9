"""A small client of the Kubernetes API.

The package ``kubernetes`` has 30 MB, and its import takes longer than a decision about a broken GPU may. The
controllers make some ten different requests.

Who calls is an IAM role: the token is a signed STS request (`cluster_token`), and an access entry of the
cluster gives the role a Kubernetes group, to which a narrow ClusterRole is bound
(https://docs.aws.amazon.com/eks/latest/userguide/access-entries.html).
"""

from __future__ import annotations

import base64
import json
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final
from urllib.parse import urlencode

import boto3
import urllib3

from inference_contracts.cluster_token import cluster_token
from operations.operations_errors import KubernetesError

KubernetesObject = dict[str, Any]

_NOT_FOUND: Final = 404
#: Difference of the clocks that is none: the header has whole seconds.
_WHOLE_SECONDS: Final = 2.0
_FIRST_ERROR: Final = 400
#: Objects of a page: https://kubernetes.io/docs/reference/using-api/api-concepts/#retrieving-large-results-sets-in-chunks
#: Pods have some 10 kB, so a page has 40 MB at most, and the 8,000 workers of a cell are two pages.
_PAGE: Final = 4000
#: A token is valid for 15 minutes.
_TOKEN_SECONDS: Final = 600.0
MERGE_PATCH: Final = "application/merge-patch+json"


class KubernetesApi:
    """The API server of a cluster.

    server: Its address.
    token: Returns a bearer token.
    authority: Certificate authority in PEM. None for those of the system, and for an address without TLS.
    timeout_seconds: How long an answer may take.
    """

    def __init__(
        self,
        server: str,
        token: Callable[[], str],
        *,
        authority: str | None = None,
        timeout_seconds: float = 5.0,
    ) -> None:
        self._server, self._token = server.rstrip("/"), token
        context = None if authority is None else ssl.create_default_context(cadata=authority)
        self._pool = urllib3.PoolManager(
            ssl_context=context, timeout=urllib3.Timeout(timeout_seconds), retries=False
        )
        self._token_until, self._bearer = 0.0, ""
        #: How far the API server's clock is ahead of ours, in seconds, by its newest answer: its times are
        #: compared with ours only after they were corrected by this.
        self.clock_skew_seconds = 0.0

    def get(self, path: str) -> KubernetesObject | None:
        """Return an object. None if it does not exist.

        path: Such as ``/api/v1/nodes/NAME``.
        """
        try:
            return self._ask("GET", path)
        except KubernetesError as error:
            if error.status == _NOT_FOUND:
                return None
            raise

    def list(self, path: str, **selectors: str) -> Iterator[KubernetesObject]:
        """Return the objects of a collection, page by page.

        path: Such as ``/api/v1/pods``.
        selectors: ``labelSelector`` and ``fieldSelector``.
        """
        position = ""
        while True:
            query = {**selectors, "limit": str(_PAGE), **({"continue": position} if position else {})}
            page = self._ask("GET", f"{path}?{urlencode(query)}")
            yield from page["items"]
            position = page.get("metadata", {}).get("continue", "")
            if not position:
                return

    def patch(self, path: str, change: Mapping[str, Any]) -> KubernetesObject:
        """Change an object by a merge patch, and return it.

        With ``metadata.resourceVersion`` in the patch, the change fails with 409 if the object was changed
        since: https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions
        """
        return self._ask("PATCH", path, change, content_type=MERGE_PATCH)

    def post(self, path: str, content: Mapping[str, Any]) -> KubernetesObject:
        """Create an object, or a subresource such as an eviction."""
        return self._ask("POST", path, content)

    def delete(self, path: str, *, uid: str) -> bool:
        """Delete an object if it is still this one, and return whether it existed.

        uid: Its identifier. Another object of the same name is left alone (409).
        """
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        try:
            self._ask("DELETE", path, options)
        except KubernetesError as error:
            if error.status == _NOT_FOUND:
                return False
            raise
        return True

    def _ask(
        self,
        method: str,
        path: str,
        content: Mapping[str, Any] | None = None,
        *,
        content_type: str = "application/json",
    ) -> KubernetesObject:
        headers = {"Authorization": f"Bearer {self._current_token()}", "Accept": "application/json"}
        if content is not None:
            headers["Content-Type"] = content_type
        body = None if content is None else json.dumps(content)
        try:
            answer = self._pool.request(method, f"{self._server}{path}", body=body, headers=headers)
            text = answer.data
        except urllib3.exceptions.HTTPError as error:
            raise KubernetesError(f"the API server did not answer {method} {path}: {error}") from error
        self._compare_clocks(answer.headers.get("Date"))
        if answer.status >= _FIRST_ERROR:
            if answer.status in (401, 403):
                self._token_until = 0.0
            raise KubernetesError(f"{method} {path}: {answer.status} {_message(text)}", answer.status)
        try:
            found: KubernetesObject = json.loads(text)
        except ValueError as error:
            raise KubernetesError(f"{method} {path}: the answer is not JSON", answer.status) from error
        return found

    def _current_token(self) -> str:
        if time.monotonic() >= self._token_until:
            self._bearer = self._token()
            self._token_until = time.monotonic() + _TOKEN_SECONDS
        return self._bearer

    def _compare_clocks(self, date: str | None) -> None:
        """Note the difference of the clocks."""
        if date is None:
            return
        skew = parsedate_to_datetime(date).timestamp() + 0.5 - time.time()
        self.clock_skew_seconds = skew if abs(skew) > _WHOLE_SECONDS else 0.0


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text).get("message", ""))[:500]
    except (ValueError, AttributeError):
        return text[:200].decode(errors="replace")


def eks_api(cluster: str, endpoint: str, authority: str) -> KubernetesApi:
    """Return the API server of an EKS cluster, with the permissions of the environment's credentials.

    cluster, endpoint: Name and address of the cluster.
    authority: Its certificate authority, PEM in base64, as EKS describes it.
    """
    session = boto3.Session()

    def token() -> str:
        credentials = session.get_credentials()
        if credentials is None:
            raise KubernetesError("there are no AWS credentials")
        return cluster_token(credentials, session.region_name, cluster)

    pem = base64.b64decode(authority).decode() if endpoint.startswith("https:") else None
    return KubernetesApi(endpoint, token, authority=pem)
