"""Commands of the platform on this machine: local up, down, status, replay."""

import typer

app = typer.Typer()
