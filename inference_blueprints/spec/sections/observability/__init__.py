"""Metrics, logs, dashboards and alarms."""
