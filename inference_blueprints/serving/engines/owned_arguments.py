"""Blueprint settings that replace an argument owned by the plan, if several engines have the argument."""

from __future__ import annotations

TENSOR = "set tensorParallelSize of the deployment"
PIPELINE = "set pipelineParallelSize of the deployment"
DATA = "set dataParallelSize of the deployment"
EXPERTS = "set expertParallel of the deployment"
NODES = "the number of nodes follows from the worker's accelerators"
TOPOLOGY = "set the deployment's topology, aggregated or disaggregated"
DISCOVERY = "the value comes from Dynamo's operator"
STREAMED = "set weights.s3 to stream weights"
WRITTEN_HERE = "write its arguments directly in 'args'"
REMOTE_CODE = "code that comes with weights is never run; serve a model that the engine itself implements"
TASK = "set task: embed, with the engine vllm"
OTHER_TASKS = (
    "only models that write text and embedding models (task: embed) are served here; reranking, "
    "classification and image models have other routes and workers"
)
MEDIA = "set media: {imagesPerRequest: …, tokensPerImage: …, allowedDomains: […]}"
FILES = "images come within requests or from hosts, never from a worker's own files"
# Dynamo's workers and frontends fetch images themselves (``common/multimodal``, ``preprocessor/media``),
# regardless of the engine's list of domains.
FETCHED_BY_DYNAMO = "Dynamo would fetch images from any public host that a request names"
