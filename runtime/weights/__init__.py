"""Copies a model from the Hugging Face Hub into an S3 bucket, once, and lets workers wait for the copy.

Two programs, `python3 -m weights.mirror` and `python3 -m weights.wait`, for any image that has Python 3.11,
huggingface_hub and boto3. Their contract is environment variables; `weights.settings` names them.
"""
