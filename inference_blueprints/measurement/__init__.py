"""Sends completions, replays recorded traffic, and turns outcomes into figures and charts."""
