"""The child that is listened to: here a Python program in the CDK's place."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_blueprints.operate.cloudformation import cdk_deploy

PROGRAM = """
import sys
print("stdout is a terminal:", sys.stdout.isatty(), flush=True)
print("trouble", file=sys.stderr, flush=True)
if sys.argv[1] == "ask":
    print("Sure (y/n)? ", end="", flush=True)
    print("answer", sys.stdin.readline().strip())
sys.exit(7)
"""

#: What `blueprints` does, in a process whose standard streams are a terminal.
DRIVER = """
import json, os, sys
from inference_blueprints import tools
from inference_blueprints.operate.cloudformation.cdk_deploy import run_cdk
tools.cdk = lambda: [sys.executable, "-c", sys.argv[1]]
class Recorder:
    heard = []
    def line(self, text): self.heard.append(["line", text])
    def question(self, text):
        self.heard.append(["question", text])
        print("ASKED", flush=True)
code = run_cdk(["ask"], os.environ, Recorder(), terminal=True)
open(sys.argv[2], "w").write(json.dumps([code, Recorder.heard]))
"""


class Recorder:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def question(self, text: str) -> None:
        raise AssertionError(f"nobody is there to answer {text}")


class Answering(Recorder):
    """Hears a question, and the child goes on."""

    def __init__(self, child: int) -> None:
        super().__init__()
        self._child = child

    def question(self, text: str) -> None:
        self.lines.append(f"? {text}")
        os.write(self._child, b"y\r\nlast line without an end")
        os.close(self._child)


def test_an_incomplete_line_is_a_question_if_nothing_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns red if a question waits for its line break, or the last line of a child is lost."""
    monkeypatch.setattr(cdk_deploy, "_PATIENCE_SECONDS", 0.0)
    reading, writing = os.pipe()
    answering = Answering(writing)
    os.write(writing, "first\ncafé\r\nSure (y/n)? ".encode())
    cdk_deploy._listen(reading, answering)
    os.close(reading)
    assert answering.lines == [
        *("first", "café", "? Sure (y/n)? ", "y", "last line without an end"),
    ]


@pytest.mark.clock
def test_without_a_terminal_the_child_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "cdk", lambda: [sys.executable, "-c", PROGRAM])
    recorder = Recorder()
    code = cdk_deploy.run_cdk(["deploy"], os.environ, recorder, terminal=False)
    assert code == 7
    assert recorder.lines == ["stdout is a terminal: False", "trouble"]


@pytest.mark.clock
def test_in_a_terminal_a_question_is_heard_before_it_is_answered(tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    command = [sys.executable, "-c", DRIVER, PROGRAM, str(tmp_path / "heard.json")]
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner) as driver:
        os.close(inner)
        shown = b""
        while b"ASKED" not in shown:
            shown += os.read(outer, 1000)
        os.write(outer, b"y\n")
        assert driver.wait(240) == 0, shown
    os.close(outer)
    code, heard = json.loads((tmp_path / "heard.json").read_text())
    assert code == 7
    assert heard == [
        ["line", "stdout is a terminal: True"],
        ["line", "trouble"],
        ["question", "Sure (y/n)? "],
        ["line", "answer y"],
    ]
