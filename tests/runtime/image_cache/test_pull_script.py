"""What the agent runs on the instance, with a stand-in for Bottlerocket's way to the host.

The stand-in writes each command down and fails when it is told to; ctr itself and Bottlerocket are not here.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inference_constructs.capacity.image_baker_policies import pull_document

pytestmark = pytest.mark.clock

IMAGES = "nvcr.io/a:1 nvcr.io/b@sha256:0a1b"

STAND_IN = """\
#!/bin/sh
echo "$*" >> "$CALLS"
case "$*" in
  *"images pull"*"$BROKEN") exit 1 ;;
  *"images pull"*"$FLAKY") if [ ! -e "$CALLS.once" ]; then touch "$CALLS.once"; exit 1; fi ;;
  *"images check"*"$HALF") exit 0 ;;
  *"images check"*) echo "${@##*==}" | tr ' ' '\\n' | tail -n 1 ;;
esac
"""


PullScript = Callable[..., tuple[int, list[str]]]


@pytest.fixture
def run(tmp_path: Path) -> PullScript:
    """Run the document's script; returns exit code and the commands that reached the host."""
    program = tmp_path / "bin" / "apiclient"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (tmp_path / "bin" / "sleep").symlink_to("/bin/true")

    def run(**faults: str) -> tuple[int, list[str]]:
        step = pull_document()["mainSteps"][0]["inputs"]
        script = "\n".join(step["runCommand"]).replace("{{ Images }}", IMAGES)
        environment = {
            "PATH": f"{tmp_path / 'bin'}:{os.defpath}",
            "CALLS": str(tmp_path / "calls"),
            **dict.fromkeys(("BROKEN", "FLAKY", "HALF"), "none of them"),
            **faults,
        }
        ended = subprocess.run(["/bin/sh", "-c", script], env=environment, check=False, timeout=30)
        calls = (tmp_path / "calls").read_text().splitlines()
        return ended.returncode, [call.removeprefix("exec admin ") for call in calls]

    return run


CTR = "sheltie ctr --address /run/containerd/containerd.sock --namespace k8s.io"
PULL = f"{CTR} images pull --local --snapshotter soci --label io.cri-containerd.image=managed"


def test_each_image_is_pulled_and_looked_at_while_kubelet_stands_still(run: PullScript) -> None:
    code, calls = run()
    assert code == 0
    assert calls == [
        "true",
        "sheltie systemctl stop kubelet",
        f"{PULL} nvcr.io/a:1",
        f"{CTR} images check --snapshotter soci --quiet name==nvcr.io/a:1",
        f"{PULL} nvcr.io/b@sha256:0a1b",
        f"{CTR} images check --snapshotter soci --quiet name==nvcr.io/b@sha256:0a1b",
        f"{CTR} content prune references",
        "sheltie sync",
    ]


def test_a_pull_that_fails_once_is_tried_again(run: PullScript) -> None:
    code, calls = run(FLAKY="nvcr.io/b@sha256:0a1b")
    assert code == 0
    assert calls.count(f"{PULL} nvcr.io/b@sha256:0a1b") == 2
    assert calls[-1] == "sheltie sync"


def test_an_image_that_there_is_not_fails_the_command(run: PullScript) -> None:
    code, calls = run(BROKEN="nvcr.io/a:1")
    assert code == 1
    assert calls[2:] == [f"{PULL} nvcr.io/a:1"] * 3


def test_an_image_that_is_not_whole_fails_the_command(run: PullScript) -> None:
    code, calls = run(HALF="nvcr.io/a:1")
    assert code != 0
    assert not any("prune" in call for call in calls)
