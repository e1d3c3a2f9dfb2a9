"""Asks OpenAI endpoints for chat completions, and times the answers."""
