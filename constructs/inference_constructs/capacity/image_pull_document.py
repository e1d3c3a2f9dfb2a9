"""The commands on the instance that bakes images: a Systems Manager document, schema 2.2.

The agent runs in Bottlerocket's control container, which reaches the host through the admin container
(https://github.com/bottlerocket-os/bottlerocket#exploration). Callers cannot inject commands: the parameter
accepts only image names, without characters that are special to a shell.
"""

from __future__ import annotations

from typing import Any

from inference_catalog.image_cache import SNAPSHOTTER

#: Time for the pulls, in seconds: a 20 GB image takes a few minutes.
_TIMEOUT_SECONDS = 7200
_PULL_ATTEMPTS = 3
_CTR = "admin ctr --address /run/containerd/containerd.sock --namespace k8s.io"

#: Image references, separated by single spaces (slightly wider than the grammar of distribution/reference).
IMAGES_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/@-]*( [A-Za-z0-9][A-Za-z0-9._:/@-]*)*$"

#: kubelet is stopped first, because it would delete images that no pod uses. With ``--local``, ctr unpacks
#: with the given snapshotter. The label marks the image for containerd's Kubernetes plug-in. The last line
#: but one deletes the compressed layers, as the settings of nodes do.
_SCRIPT = f"""\
set -eu
admin() {{ apiclient exec admin sheltie "$@"; }}
until apiclient exec admin true; do sleep 5; done
admin systemctl stop kubelet
for image in {{{{ Images }}}}; do
  attempt=1
  until {_CTR} images pull --local --snapshotter {SNAPSHOTTER} \
--label io.cri-containerd.image=managed "$image" > /dev/null; do
    if [ "$attempt" -ge {_PULL_ATTEMPTS} ]; then exit 1; fi
    attempt=$((attempt + 1))
    sleep 15
  done
  {_CTR} images check --snapshotter {SNAPSHOTTER} --quiet "name==$image" | grep -Fq "$image"
done
{_CTR} content prune references
admin sync
"""


def pull_document() -> dict[str, Any]:
    """Return the document. Its only parameter, ``Images``, has image references separated by spaces."""
    return {
        "schemaVersion": "2.2",
        "description": "Pulls container images onto the data volume of a Bottlerocket instance",
        "parameters": {
            "Images": {
                "type": "String",
                "description": "Image references, parted by single spaces",
                "allowedPattern": IMAGES_PATTERN,
            }
        },
        "mainSteps": [
            {
                "action": "aws:runShellScript",
                "name": "PullImages",
                "inputs": {
                    "timeoutSeconds": str(_TIMEOUT_SECONDS),
                    "runCommand": _SCRIPT.splitlines(),
                },
            }
        ],
    }
