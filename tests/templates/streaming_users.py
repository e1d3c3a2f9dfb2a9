"""Users of the signal store that streaming jobs write as."""

from __future__ import annotations

from tests.templates.support import Templates


def user_of(templates: Templates, signal: str) -> str:
    """Return the name of the one user who may write this signal and no other."""
    [name] = [
        each["UserName"]
        for each in templates.properties("AWS::ElastiCache::User", "Stores")
        if f"~signal:{signal}:*" in each["AccessString"].split()
    ]
    return str(name)
