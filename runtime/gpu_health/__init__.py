"""The Lambda functions of GPU health: `hardware` for events of alarms, `minute` for each minute."""
