"""Blueprints for LLM inference platforms on AWS: one YAML file to CloudFormation."""

__version__ = "0.2.0"
