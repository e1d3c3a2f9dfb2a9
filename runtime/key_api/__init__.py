"""The API of API keys, as a function behind an API Gateway REST API: teams administer their own keys.

Callers sign their requests with the credentials of a role or user of their team (AWS Signature Version 4).
"""
