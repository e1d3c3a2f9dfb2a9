"""Starts the build of an image when a stack that needs it is deployed."""
