"""The Lambda functions of GPU health: `signals` for events about hardware, `minute` for each minute."""
