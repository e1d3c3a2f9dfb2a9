"""Copies a model from the Hugging Face Hub into an S3 bucket, once, and onto each node that serves it, once.

Three programs, `python3 -m weights.mirror`, `weights.wait` and `weights.node_cache`, for any image that has
Python 3.11 and huggingface_hub. The first two also need boto3. Their contract is environment variables;
`weights.settings` names them.
"""
