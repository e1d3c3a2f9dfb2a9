"""The OpenAI-compatible API of batches and their files, as a function behind an API Gateway REST API.

What it answers is what the official clients expect
(https://platform.openai.com/docs/api-reference/batch, https://platform.openai.com/docs/api-reference/files,
https://platform.openai.com/docs/api-reference/uploads).
"""
