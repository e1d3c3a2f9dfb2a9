"""To which file a deployed platform belongs, and which operation changes it now."""
