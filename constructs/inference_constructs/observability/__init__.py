"""Alarms and dashboards of a platform."""
