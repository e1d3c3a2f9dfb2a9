"""The controllers of GPU health and of the capacity shift in a local run, and what they read and change."""
