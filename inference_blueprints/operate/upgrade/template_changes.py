"""What `deploy` will do with the proposed templates."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from inference_blueprints.operate.changes.change_checks import check_change
from inference_blueprints.operate.changes.findings import Held, Prepared
from inference_blueprints.operate.changes.platform_change import read_change
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.upgrade.proposal import Proposal
from inference_blueprints.spec.lock.lock import lock_path
from inference_blueprints.spec.lock.lock_writer import lock_text
from inference_blueprints.synthesis import synthesise

CHECK = "templates"


def template_changes(proposal: Proposal) -> Iterator[CheckResult]:
    """Compare the deployed templates with the proposed ones.

    Raises UserError if AWS refuses to return a template, or the proposed blueprint cannot be synthesised.
    """
    if proposal.cluster is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        assembly = Path(folder, "cdk.out")
        synthesise(str(_proposed_file(proposal, Path(folder, "proposed"))), assembly)
        change = read_change(proposal.account, proposal.blueprint.metadata.name, assembly)
        found = check_change(change)
    if not found:
        yield CheckResult(CHECK, "ok", f"{len(change.deployed)} stacks can be updated in one step")
    for finding in found:
        if isinstance(finding, Held):
            yield CheckResult(CHECK, "warning", f"held by deploy: {finding.stack}: {finding.message}")
        elif isinstance(finding, Prepared):
            yield CheckResult(CHECK, "warning", f"prepared by deploy: {finding.stack}: {finding.message}")
        else:
            yield finding


def _proposed_file(proposal: Proposal, folder: Path) -> Path:
    """Write the proposed blueprint and lock beside what is next to the present ones."""
    folder.mkdir()
    file = folder / proposal.path.name
    own = {proposal.path.name, lock_path(proposal.path).name}
    for path in proposal.path.resolve().parent.iterdir():
        if path.name not in own:
            (folder / path.name).symlink_to(path)
    file.write_text(proposal.text, "utf-8")
    lock_path(file).write_text(lock_text(proposal.new), "utf-8")
    return file
