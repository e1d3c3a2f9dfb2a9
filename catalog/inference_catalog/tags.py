"""The library's own tag."""

#: Every stack and every resource of a platform has this tag. Its value is `metadata.name`, which is also the
#: cluster's name.
PLATFORM_TAG = "inference-blueprints:platform"
