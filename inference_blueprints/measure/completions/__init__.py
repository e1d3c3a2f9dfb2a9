"""Sends chat completions to OpenAI endpoints and times the answers."""
