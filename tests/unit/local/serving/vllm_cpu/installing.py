"""A stand-in for uv that installs nothing, and the machine that has it."""

from __future__ import annotations

import sys
from pathlib import Path

from inference_local.serving.vllm_cpu.host_requirements import LocalMachine

HOST = LocalMachine("Linux", "x86_64", frozenset({"avx2"}), (2, 36), (3, 11), 10**12, Path("fake") / "uv")


class FakeUv:
    """The folder that the stand-in reads and writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "uv"
        source = Path(__file__).with_name("fake_uv.py")
        self.program.write_text(f"#!{sys.executable}\n{source.read_text()}")
        self.program.chmod(0o755)

    def request(self, behaviour: str) -> None:
        (self.folder / behaviour).touch()

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def syncs(self) -> int:
        return sum(" sync " in call for call in self.calls)
