"""Synthesis of a blueprint, for tests and for the recorded templates."""

from __future__ import annotations

from pathlib import Path

import app
from inference_blueprints.loading import load_blueprint
from tests.templates.support import Templates

#: No assets are copied to the cloud assembly or bundled, except the code of batch and of the platform's keys,
#: which contains what the blueprint says.
CONTEXT = {"aws:cdk:disable-asset-staging": True, "aws:cdk:bundling-stacks": ["*-Batch", "*-PlatformKeys"]}


def write_templates(blueprint: Path, outdir: Path) -> Templates:
    """Synthesise a blueprint into a folder."""
    app.synthesise(app.build_app(load_blueprint(str(blueprint)), outdir=outdir, context=CONTEXT))
    return Templates(outdir)
