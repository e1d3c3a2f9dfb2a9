"""The OpenAI-compatible API of batches and their files, as a function behind an API Gateway REST API.

Responses follow the expectations of the official clients
(https://platform.openai.com/docs/api-reference/batch, https://platform.openai.com/docs/api-reference/files,
https://platform.openai.com/docs/api-reference/uploads).
"""
