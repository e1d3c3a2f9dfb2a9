"""Blueprints of several sizes with their plans."""

from tests.unit.plan_samples import changed, quickstart_document, scene, scene_name, shipped_scene, summary

__all__ = ["changed", "quickstart_document", "scene", "scene_name", "shipped_scene", "summary"]
