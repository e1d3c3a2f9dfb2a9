"""Snapshots of images: baked in the account, and compared with the plan."""
