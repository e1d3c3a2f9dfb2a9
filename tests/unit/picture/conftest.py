"""Blueprints of several sizes with their plans."""

from tests.unit.plan_samples import changed, quickstart_document, scene, shipped_scene

__all__ = ["changed", "quickstart_document", "scene", "shipped_scene"]
