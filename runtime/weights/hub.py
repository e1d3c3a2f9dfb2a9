"""Lists the files of a model on the Hugging Face Hub and checks their bytes while they stream."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any, Protocol

from huggingface_hub import HfApi, HfFileSystem
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.hf_api import RepoFile

from weights.attempts import Attempts

#: The same weights in other formats, and files that no engine reads. If there were a second set of
#: safetensors
#: below the prefix, an engine would load both.
NOT_COPIED = (
    "*.bin",
    "*.gguf",
    "*.h5",
    "*.msgpack",
    "*.onnx",
    "*.onnx_data",
    "*.pt",
    "*.pth",
    ".gitattributes",
    "consolidated*.safetensors",
    "metal/*",
    "onnx/*",
    "original/*",
)
_PIECE_BYTES = 2**20
_REFUSED = (401, 403)
_WHOLE, _BAD_REQUEST, _SERVER_ERROR = 200, 400, 500
_LATER = (408, 429)


class HubError(Exception):
    """The Hub refuses a request permanently, so a retry is useless."""


class BrokenHubError(Exception):
    """The Hub breaks its answers or cannot be reached, also after several attempts."""


class CorruptFileError(Exception):
    """A file whose bytes differ from the Hub's digest or size."""


@dataclass(frozen=True)
class HubFile:
    """One file of a repository.

    Parameters
    ----------
    path
        Path within the repository.
    digest
        ``sha256:`` for a file in large file storage, ``git-sha1:`` (the object id) for others, in hex.
    """

    path: str
    size: int
    digest: str


class Hub:
    """A repository on the Hub at one commit."""

    def __init__(self, repository: str, revision: str) -> None:
        self._repository = repository
        self._revision = revision
        self._files = HfFileSystem()

    def files(self) -> list[HubFile]:
        """Return the files that an engine needs, in the order of their paths.

        Raises
        ------
        HubError
            If the repository cannot be read, does not exist, or has no safetensors.
        """
        with _explained(self._repository, self._revision):
            tree = list(HfApi().list_repo_tree(self._repository, revision=self._revision, recursive=True))
        files = [_hub_file(entry) for entry in tree if isinstance(entry, RepoFile)]
        needed = [file for file in files if not any(fnmatch(file.path, pattern) for pattern in NOT_COPIED)]
        if not any(file.path.endswith(".safetensors") for file in needed):
            raise HubError(
                f"{self._repository} has no safetensors at {self._revision}; only safetensors can be streamed"
            )
        return sorted(needed, key=lambda file: file.path)

    def open(self, file: HubFile) -> CheckedStream:
        """Return a stream of a file's bytes. The first read sends the request to the Hub."""
        address = f"{self._repository}@{self._revision}/{file.path}"
        return CheckedStream(
            file,
            connect=lambda: HubStream(lambda first: self._connected(address, first), file),
            explained=lambda: _explained(self._repository, self._revision),
        )

    def _connected(self, address: str, first: int) -> Any:
        stream = self._files.open(address, "rb", block_size=0)
        # Its read() requests the bytes from here on.
        stream.loc = first
        return stream


class ByteStream(Protocol):
    """Bytes from a connection."""

    def read(self, amount: int = -1, /) -> bytes:
        """Return at most this many bytes; nothing at the end."""

    def close(self) -> None:
        """Close the connection."""


class HubStream:
    """The bytes of a file on the Hub. What breaks is opened again where it broke.

    Parameters
    ----------
    connect
        Returns a stream of huggingface_hub that begins at a byte. It opens a lost connection once by itself.
    file
        The file.
    """

    def __init__(self, connect: Callable[[int], Any], file: HubFile) -> None:
        self._connect = connect
        self._file = file
        self._stream: Any = None
        self._position = 0
        self._attempts = Attempts()
        #: The answer that began with the first byte.
        self._from_the_start: Any = None

    def read(self, amount: int = -1, /) -> bytes:
        """Return at most this many bytes; nothing at the end.

        Raises
        ------
        BrokenHubError
            If several attempts bring no more bytes.
        """
        while True:
            problem: Exception | None = None
            try:
                piece = self._piece(amount)
                if piece or self._position == self._file.size:
                    self._position += len(piece)
                    self._attempts.arrived(len(piece))
                    return piece
            # Errors of requests, httpx or urllib3, whichever this release of huggingface_hub uses.
            except Exception as error:
                if _is_final(error):
                    raise
                problem = error
            self.close()
            if not self._attempts.again():
                if problem is None:
                    return b""
                raise BrokenHubError(
                    f"{self._file.path}: broken at byte {self._position} of {self._file.size}: {problem!r}"
                ) from problem

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _piece(self, amount: int) -> bytes:
        if self._stream is None:
            self._stream = self._connect(self._position)
        piece: bytes = self._stream.read(amount)
        answer = self._stream.response
        if self._position == 0:
            self._from_the_start = answer
        elif answer is not None and answer is not self._from_the_start and answer.status_code == _WHOLE:
            raise OSError(f"asked for bytes from {self._position} on, got the whole file")
        return piece


class CheckedStream:
    """The bytes of a file. The last read raises an error if the file's digest or size is wrong.

    So an upload that reads from it never completes with a wrong file.

    Parameters
    ----------
    explained
        Turns refusals into a `HubError`. Everybody can list the files of a gated model, but not read them.
    """

    def __init__(
        self,
        file: HubFile,
        *,
        connect: Callable[[], ByteStream],
        explained: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._file = file
        self._connect = connect
        self._explained = explained
        self._stream: ByteStream | None = None
        self._left = file.size
        algorithm, self._expected = file.digest.split(":")
        self._hash = hashlib.sha256() if algorithm == "sha256" else _git_hash(file.size)

    def read(self, amount: int = -1) -> bytes:
        """Return the requested number of bytes, or fewer at the end.

        Parameters
        ----------
        amount
            Number of bytes. All remaining bytes if negative.

        Raises
        ------
        CorruptFileError
            If the file ends early or has another digest.
        HubError
            If the Hub refuses the file.
        """
        wanted = self._left if amount < 0 else min(amount, self._left)
        taken = bytearray()
        while len(taken) < wanted:
            with self._explained():
                piece = self._opened().read(min(_PIECE_BYTES, wanted - len(taken)))
            if not piece:
                raise CorruptFileError(f"{self._file.path}: ends {self._left - len(taken)} bytes early")
            taken += piece
        self._left -= len(taken)
        self._hash.update(taken)
        if not self._left:
            self._finish()
        return bytes(taken)

    def _opened(self) -> ByteStream:
        """Return the connection. It is opened at first use."""
        if self._stream is None:
            self._stream = self._connect()
        return self._stream

    def _finish(self) -> None:
        """Compare the digest and close the connection."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._hash.hexdigest() != self._expected:
            raise CorruptFileError(
                f"{self._file.path}: expected {self._file.digest}, got {self._hash.hexdigest()}"
            )


def _is_final(error: Exception) -> bool:
    """Whether the Hub gives the same answer again."""
    # The response of a refusal may count as false.
    if not isinstance(error, HfHubHTTPError) or error.response is None:
        return False
    status = error.response.status_code
    return _BAD_REQUEST <= status < _SERVER_ERROR and status not in _LATER


def _hub_file(entry: RepoFile) -> HubFile:
    """Turn an entry of the Hub's tree into what is checked."""
    digest = f"sha256:{entry.lfs.sha256}" if entry.lfs else f"git-sha1:{entry.blob_id}"
    return HubFile(entry.path, entry.size, digest)


def _git_hash(size: int) -> hashlib._Hash:
    """Start the hash that git uses as the id of a file."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


@contextmanager
def _explained(repository: str, revision: str) -> Iterator[None]:
    """Turn permanent refusals of the Hub into errors that say what to do."""
    page = f"https://huggingface.co/{repository}"
    try:
        yield
    except GatedRepoError as error:
        raise HubError(
            f"{repository} is gated: accept its licence at {page} with the account whose token the model's "
            "tokenSecretArn names"
        ) from error
    except RevisionNotFoundError as error:
        raise HubError(f"{repository} has no revision {revision}: see {page}/commits") from error
    except RepositoryNotFoundError as error:
        raise HubError(
            f"{repository} is not on the Hub, or private: check the name, and let the model's "
            "tokenSecretArn name a secret with a token that may read it"
        ) from error
    except HfHubHTTPError as error:
        if error.response is not None and error.response.status_code in _REFUSED:
            raise HubError(
                f"{repository} cannot be read with this token: check the secret in tokenSecretArn"
            ) from error
        raise
