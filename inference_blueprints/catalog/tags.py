"""The library's own tag."""

#: Carried by every stack and every resource of a platform; its value is `metadata.name`, which is also the
#: cluster's name.
PLATFORM_TAG = "inference-blueprints:platform"
