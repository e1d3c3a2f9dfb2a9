"""Blueprint settings that replace an argument owned by the plan, as far as engines have them in common."""

from __future__ import annotations

TENSOR = "set tensorParallelSize of the deployment"
PIPELINE = "set pipelineParallelSize of the deployment"
DATA = "set dataParallelSize of the deployment"
EXPERTS = "set expertParallel of the deployment"
NODES = "a worker lies on as many nodes as its accelerators take"
TOPOLOGY = "name the deployment's topology, aggregated or disaggregated"
DISCOVERY = "Dynamo's operator does"
STREAMED = "set weights.s3 for weights that are streamed"
WRITTEN_HERE = "write its arguments here"
REMOTE_CODE = "code that comes with weights is never run; serve a model that the engine itself implements"
MEDIA = "set media: {imagesPerRequest: …, tokensPerImage: …, allowedDomains: […]}"
FILES = "images come within requests or from hosts, never from a worker's own files"
# Dynamo's workers and frontends fetch images themselves (``common/multimodal``, ``preprocessor/media``),
# regardless of the engine's list of domains.
FETCHED_BY_DYNAMO = "Dynamo would fetch images from any public host that a request names"
