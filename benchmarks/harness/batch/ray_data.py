"""Ray Data's HTTP request processor over the same file; runs in an environment of its own, which has Ray.

`python ray_data.py FILE ADDRESS OUTPUT` prints the processor seconds from after Ray's start to the end of the
output, of the processes that are alive then: what others took is not counted, which is to Ray's advantage.
"""

from __future__ import annotations

import sys

import psutil
import ray
from ray.data.llm import HttpRequestProcessorConfig, build_processor


def main(file: str, address: str, output: str) -> None:
    """Send the file and print what it took.

    output: Folder of the results.
    """
    ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    begin = _processor_seconds()
    configuration = HttpRequestProcessorConfig(
        url=f"{address}/v1/chat/completions", batch_size=64, concurrency=1
    )
    processor = build_processor(
        configuration,
        preprocess=lambda row: {"payload": row["body"], "custom_id": row["custom_id"]},
        postprocess=lambda row: {"custom_id": row["custom_id"], "response": row["http_response"]},
    )
    processor(ray.data.read_json(file, lines=True)).write_json(output)
    print(_processor_seconds() - begin)
    ray.shutdown()


def _processor_seconds() -> float:
    """Return what this process and all below it have taken."""
    own = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in [own, *own.children(recursive=True)])


if __name__ == "__main__":
    main(*sys.argv[1:])
